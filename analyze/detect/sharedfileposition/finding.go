package sharedfileposition

import (
	"fmt"
	"path/filepath"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// proof is that reads went astray. seen: what is known of the samples.
func proof(f *file, seen []finding.Evidence) finding.Finding {
	who := words.Ints("worker", f.numbers())
	if len(f.workers()) < len(f.movers) {
		who += " and another process"
	}
	list := []finding.Evidence{f.opened(), {
		Text: fmt.Sprintf("%s of these reads began elsewhere than where their process had sought right before: "+
			"another process had moved the position between the two.", words.Number(int64(f.taken))),
	}, {
		Text: fmt.Sprintf("The position went from one process to another %s times.", words.Number(int64(f.turns))),
	}}
	for _, m := range f.worst() {
		list = append(list, finding.Evidence{Detail: true, Text: fmt.Sprintf("%s: %s of %s went astray; the last had sought byte %s.",
			m.name(), words.Number(int64(m.Taken)), count(m.Reads, "read"), words.Number(m.Sought))})
	}
	if f.again > 0 {
		list = append(list, finding.Evidence{Text: fmt.Sprintf("%s more were done again by their process, and are not counted.",
			words.Number(int64(f.again)))})
	}
	list = append(list, seen...)
	return finding.Finding{
		Certainty: finding.Proven,
		Title: fmt.Sprintf("%s move the position of one open file under each other: %s began at the wrong place of %s", words.Upper(who),
			count(f.taken, "read"), filepath.Base(f.path)),
		Evidence: list,
		Cost: fmt.Sprintf("%s of %s (%s) got other bytes than they were to, and other ones in each run",
			words.Number(int64(f.taken)), count(f.reads, "read"), words.Percent(float64(f.taken)/float64(max(f.reads, 1)))),
		Fix:   fix(f),
		Proof: "kernel",
		Facts: f,
	}
}

// torn is that processes read on from where others have left the position, although they seek.
func torn(f *file, seen []finding.Evidence) finding.Finding {
	list := []finding.Evidence{f.opened(), {
		Text: fmt.Sprintf("%s of these reads began where another process had left the position, without a seek of their own. A buffered file "+
			"seeks inside of its buffer without asking the kernel, and takes what it reads then for the bytes after its buffer: "+
			"a lock does not help.",
			words.Number(int64(f.loose))),
	}}
	return finding.Finding{
		Certainty: finding.Likely,
		Title: fmt.Sprintf("%s read one open file through buffers of their own and one position: "+
			"%s began where another process had left it in %s", words.Upper(words.Ints("worker", f.numbers())), count(f.loose, "read"),
			filepath.Base(f.path)),
		Evidence: append(list, seen...),
		Cost:     fmt.Sprintf("%s of %s may have got bytes of another place", words.Number(int64(f.loose)), count(f.reads, "read")),
		Fix:      fix(f),
		Proof:    "kernel",
		Facts:    f,
	}
}

// sighting is that a position moves which several workers share.
func sighting(f *file) finding.Finding {
	return finding.Finding{
		Certainty: finding.Likely,
		Title: fmt.Sprintf("%s share the position of one open file, and it moves: %s",
			words.Upper(words.Ints("worker", f.numbers())), filepath.Base(f.path)),
		Evidence: []finding.Evidence{{
			Text: fmt.Sprintf("%s was opened%s before the workers were forked: they and their parent have one open file description (kcmp), "+
				"and one position in it.", f.path, f.at),
			Refs: f.refs(),
		}, {
			Text: fmt.Sprintf("At %s of %s the position was another one than before, at %d further back: the file is read, and sought in. "+
				"By whom is visible in the kernel tier only.", words.Number(int64(f.moved)), count(f.looks, "look"), f.back),
		}},
		Cost:  "where two processes move it at a time, reads get other bytes than they were to, and other ones in each run",
		Fix:   fix(f),
		Proof: "procfs",
		Facts: f,
	}
}

// note is that processes read from where others have left the position: a queue,
// or lines that are torn apart. Or that they read again what went astray.
func note(f *file) finding.Finding {
	text := fmt.Sprintf("%s of %s began where another process had left the position, without a seek of their own.",
		words.Number(int64(f.loose)), count(f.reads, "read"))
	if f.again > 0 {
		text += fmt.Sprintf(" %s went astray and were done again.", words.Number(int64(f.again)))
	}
	return finding.Finding{
		Certainty: finding.Note,
		Title:     fmt.Sprintf("%s read %s by turns, through one position", words.Count(len(f.movers), "process"), filepath.Base(f.path)),
		Evidence:  []finding.Evidence{{Text: text, Refs: f.refs()}},
		Cost:      "who reads what is left to chance; a buffered reader tears records apart where one process' block ends",
		Fix:       fix(f),
		NotABugIf: "the processes are to share the file out among them in records that one read takes.",
		Proof:     "kernel",
		Facts:     f,
	}
}

// opened says whose the open file is.
func (f *file) opened() finding.Evidence {
	return finding.Evidence{
		Text: fmt.Sprintf("%s was opened%s before the workers were forked%s: %s have one open file description, and one position in it (%s, %s).",
			f.path, f.at, f.since(), words.Count(len(f.movers), "process"), count(f.seeks, "seek"), count(f.reads, "read")),
		Refs: f.refs(),
	}
}

// since says what became of the main process' descriptor, if it is not open any more.
func (f *file) since() string {
	for _, m := range f.movers {
		if m.Origin != "shared" {
			return ""
		}
	}
	return ", and closed there since"
}

func fix(f *file) string {
	return fmt.Sprintf("# open the file in the worker. In __init__:\n"+
		"self.file = None\n"+
		"# and in __getitem__ (or __iter__), before it reads:\n"+
		"if self.file is None:\n"+
		"    self.file = open(%q, \"rb\")\n\n"+
		"# or read without a position\n"+
		"os.pread(self.file.fileno(), size, offset)", f.path)
}

// count is "1 read", "1,536 reads".
func count(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return words.Number(int64(n)) + " " + one + "s"
}

// worst are the processes of which reads went astray.
func (f *file) worst() (all []mover) {
	for _, m := range f.movers {
		if m.Taken > 0 {
			all = append(all, m)
		}
	}
	return all
}

func (m mover) name() string {
	if m.worker == nil {
		return "A process that is no worker of this loader"
	}
	return fmt.Sprintf("Worker %d (pid %d)", m.worker.Number, m.worker.Pid)
}
