package shmexhausted

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// fix is what fits: fewer batches at once, a smaller type, or a larger /dev/shm.
// Another sharing strategy is none of it: all of torch's use /dev/shm.
func (r *room) fix() string {
	n := r.worst
	if n == nil {
		return "df -h /dev/shm      # how large is it, while nothing runs?\n" + larger(0)
	}
	var lines []string
	for _, f := range r.leftOver() {
		if len(lines) == told {
			break
		}
		lines = append(lines, fmt.Sprintf("rm '/dev/shm/%s'      # %s, of pid %d, which is dead", f.Name, words.Bytes(f.Bytes), f.Pid))
	}
	if n.bytes > n.free {
		lines = append(lines, n.fewer())
		if text := n.smaller(); text != "" {
			lines = append(lines, text)
		}
	} else if len(r.effects) > 0 {
		lines = append(lines, "# if the loop keeps batches: copies, not what lies in shared memory\nkept.append(batch.clone())")
	}
	then := n.rooms.All[len(n.rooms.All)-1]
	return strings.Join(append(lines, larger(n.atMost()+then.Capacity-n.free)), "\n")
}

// fewer is the loader with so few batches at once that they fit.
func (n *need) fewer() string {
	most := n.ranks[0]
	object := &most.loader.Objects[most.object]
	at := most.loader.At()
	fits := int64(float64(n.free) * (1 - traces.ShmMargin) / float64(max(most.batch, 1)) / float64(len(n.ranks)))
	workers, prefetch, ok := object.FewerInFlight(fits)
	if !ok {
		return fmt.Sprintf("# %s: not even one worker fits; the main process needs no shared memory\nDataLoader(..., num_workers=0)", at)
	}
	return fmt.Sprintf("# %s: %d x %d + %d batches take %s\nDataLoader(..., num_workers=%d, prefetch_factor=%d)", at, workers, prefetch,
		1+traces.ForAMoment, words.Bytes((workers*prefetch+1+traces.ForAMoment)*most.batch*int64(len(n.ranks))), workers, prefetch)
}

// narrower types that hold the same for training, and how many times smaller they are.
var narrower = []struct {
	from, to, when string
	times          int64
}{
	{"float64", "float32", "NumPy's default is twice what a model takes", 2},
	{"float32", "uint8", "of images: as they are read, scaled on the GPU", 4},
}

// smaller is the type that most of a batch could have, if it would fit then with as
// many workers as now.
func (n *need) smaller() string {
	most := n.ranks[0]
	first, _, _ := strings.Cut(most.seen[0].Dtypes, ",")
	name, text, _ := strings.Cut(first, "=")
	bytes, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return ""
	}
	for _, t := range narrower {
		if t.from != name {
			continue
		}
		need := (most.batch - min(bytes, most.batch) + min(bytes, most.batch)/t.times) * most.moment * int64(len(n.ranks))
		fits := "which fits"
		if need > n.free {
			fits = "which does not fit by itself"
		}
		return fmt.Sprintf("# %s in place of %s (%s): %s at most, %s", t.to, t.from, t.when, words.Bytes(need), fits)
	}
	return ""
}

// larger is a /dev/shm that holds so many bytes, for who can set it.
func larger(bytes int64) string {
	size := "8192" // MiB; it was not seen what a batch takes
	if bytes > 0 {
		size = strconv.FormatInt(traces.ShmSize(bytes), 10)
	}
	return "# or a larger /dev/shm; it takes memory only as far as it is used:\n" +
		"docker run --shm-size=" + size + "m ...\n" +
		"# compose: shm_size: " + size + "m\n" +
		"# Kubernetes: volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: " + size + "Mi}}]\n" +
		"#             volumeMounts: [{name: shm, mountPath: /dev/shm}]\n" +
		"# your own machine: mount -o remount,size=" + size + "m /dev/shm"
}
