package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// randomProgram is a training drawn at random, in which a container grows with
// the samples, or only seems to.
type randomProgram struct {
	grows bool    // until there is no memory left
	what  string  // is kept, and in what
	where string  // it hangs, and who fills it
	title string  // that a finding must begin with
	pace  float64 // bytes kept for 1,000 samples, about, where it grows
	text  string
}

const (
	randomBatch, randomPasses = 4, 3
	// randomServed is how many samples a process serves in all passes, and
	// randomSleep what one takes it, in seconds: with that it is looked at often
	// enough.
	randomServed = 1200
	randomSleep  = 0.006
)

// shape is the numbers of a program.
type shape struct {
	workers, samples int
	size             int // bytes of what is kept
	width, outputs   int // of the model
	persistent       bool
}

// drawProgram gives the program of a number: the same for the same seed. Every
// third does not grow.
func drawProgram(seed uint64, number int) randomProgram {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	p := randomProgram{grows: number%3 != 2}
	at := one(r, spots)
	s := shape{workers: 2, width: 8, outputs: 8}
	if r.IntN(3) == 0 {
		s.workers = 0
	}
	ofWorkers := s.workers > 0 && !at.main
	from := growingKeepers
	if s.persistent = s.workers > 0 && (ofWorkers || r.IntN(2) == 0); !p.grows {
		// What workers keep that are started for each pass goes with them.
		if mortal := ofWorkers && r.IntN(4) == 0; mortal {
			s.persistent = false
		} else {
			from = boundedKeepers
		}
	}
	k := one(r, only(from, func(k keeper) bool { return k.loop || !at.loop }))
	v := one(r, only(sampleValues, func(v kept) bool { return k.value == "" || v.name == k.value }))
	s.samples = randomServed / randomPasses * max(s.workers, 1) / randomBatch * randomBatch
	keeps := 32<<20 + r.IntN(96<<20) // bytes in a process, of what goes on
	s.size = keeps / randomServed
	if at.loop {
		v = one(r, batchValues)
		s.size = keeps / (s.samples * randomPasses / randomBatch)
		if s.width, s.outputs = s.size/4/randomBatch, 16; v.name == "detached outputs" {
			s.width, s.outputs = s.outputs, s.width
		}
	}
	if p.pace = float64(1000 * s.size); at.loop {
		p.pace /= randomBatch
	}
	p.write(r, at, k, v, s)
	return p
}

// write makes its text of what was drawn, and draws what lies between.
func (p *randomProgram) write(r *rand.Rand, at spot, k keeper, v kept, s shape) {
	name := one(r, attributeNames)
	if strings.HasPrefix(at.path, "__main__.") {
		name = strings.ToUpper(strings.TrimPrefix(name, "_"))
	}
	made, through := k.make, ""
	for range r.IntN(3) {
		marks := map[string]string{"INNER": made, "ATTRIBUTE": one(r, attributeNames)}
		around := one(r, steps)
		made, through = expand(around.make, marks), expand(around.through, marks)+through
	}
	around := wraps[0]
	if strings.HasPrefix(at.path, "dataset.") && r.IntN(2) == 0 {
		around = one(r, wraps)
	}
	marks := map[string]string{
		"NAME": name, "MAKE": made, "C": at.expression + through, "I": "i", "V": "produce()", "KEEP": k.keep, "SAMPLE": v.make,
		"BATCH": strconv.Itoa(randomBatch), "PASSES": strconv.Itoa(randomPasses), "SLEEP": fmt.Sprint(randomSleep),
		"SAMPLES": strconv.Itoa(s.samples), "WORKERS": strconv.Itoa(s.workers), "SIZE": strconv.Itoa(s.size),
		"WIDTH": strconv.Itoa(s.width), "OUTPUTS": strconv.Itoa(s.outputs), "DATASET": around.make, "COLLATE": "None",
		"ORDER": one(r, []string{"shuffle=False", "shuffle=True"}), "CONTEXT": "None", "PERSISTENT": "False",
		"BALLAST": one(r, ballast), "GLOBAL": "", "CLASS": "", "INIT": "", "METHODS": "", "GET": "", "BEFORE": "", "LOOP": "",
	}
	if s.workers > 0 {
		marks["CONTEXT"] = `"fork"`
	}
	if s.persistent {
		marks["PERSISTENT"] = "True"
	}
	if at.loop {
		marks["V"], marks["SAMPLE"] = v.make, "None"
	}
	for mark, text := range at.marks {
		marks[mark] = text
	}
	p.text = expand(skeleton, marks)
	p.title = strings.Replace(expand(at.path, marks), "dataset", "dataset"+around.path, 1) + through + k.inside
	if at.function != "" {
		p.title += " in " + at.function + "()"
	}
	p.what = fmt.Sprintf("%s (%s)", k.name, v.name)
	p.where = strings.Join(slices.DeleteFunc([]string{at.name, around.name}, func(s string) bool { return s == "" }), ", ")
	p.where += fmt.Sprintf("; %d workers", s.workers)
	if s.persistent {
		p.where += ", persistent"
	}
}

func one[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func only[T any](from []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(from), func(each T) bool { return !is(each) })
}

// expand puts texts in the place of their marks, as long as there are any. What
// takes the place of a whole line is indented as that was.
func expand(text string, marks map[string]string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		start := strings.IndexByte(line, '$')
		if start < 0 {
			lines = append(lines, line)
			continue
		}
		end := start + 1
		for end < len(line) && line[end] >= 'A' && line[end] <= 'Z' {
			end++
		}
		put, known := marks[line[start+1:end]]
		if !known {
			panic("no such mark: " + line)
		}
		before, after := line[:start], line[end:]
		if strings.TrimSpace(before) != "" || after != "" {
			lines = append(lines, expand(before+put+after, marks))
		} else if put != "" {
			for _, l := range strings.Split(expand(put, marks), "\n") {
				lines = append(lines, strings.TrimRight(before+l, " "))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// TestDrawProgram holds that the programs are the same for the same seed, that all
// that they are drawn from is drawn, and that Python can compile them.
func TestDrawProgram(t *testing.T) {
	p := python(t)
	folder, all, still := t.TempDir(), "", 0
	command := []string{p.Path, "-c", "import sys\nfor name in sys.argv[1:]: compile(open(name).read(), name, 'exec')"}
	for n := range 600 {
		drawn := drawProgram(7, n)
		if again := drawProgram(7, n); again != drawn {
			t.Errorf("program %d is not the same when it is drawn again", n)
		}
		if other := drawProgram(8, n); other.text == drawn.text {
			t.Errorf("program %d is the same for another seed", n)
		}
		if strings.Contains(drawn.text, "$") || drawn.title == "" {
			t.Errorf("program %d is not complete", n)
		}
		if !drawn.grows {
			still++
		}
		all += drawn.what + "; " + drawn.where + "\n"
		if n < 120 {
			file := filepath.Join(folder, fmt.Sprintf("program%d.py", n))
			if err := os.WriteFile(file, []byte(drawn.text), 0o600); err != nil {
				t.Fatal(err)
			}
			command = append(command, file)
		}
	}
	if still != 200 {
		t.Errorf("%d of 600 do not grow", still)
	}
	for _, k := range append(slices.Clone(growingKeepers), boundedKeepers...) {
		if !strings.Contains(all, k.name+" (") {
			t.Errorf("never drawn: %s", k.name)
		}
	}
	for _, at := range spots {
		if !strings.Contains(all, "; "+at.name) {
			t.Errorf("never drawn: %s", at.name)
		}
	}
	if compiled := run(t, folder, command...); compiled.code != 0 {
		t.Errorf("cannot be compiled:\n%s", compiled.tail())
	}
}
