package analyze_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

func TestLargeWrite(t *testing.T) {
	dir := os.Getenv("LARGE")
	if dir == "" {
		t.Skip()
	}
	r := NewRun(t)
	mode := os.Getenv("LARGEMODE")
	o := r.Process(-1, 0).Open(Loader{Workers: 2, Batches: 200, Slots: []Slot{numpyRNG, randomRNG, torchRNG, datasetRNG}, 
		Start: func(pass, worker int) []*Gen {
			if mode == "equal" {
				return []*Gen{MT(1), Python(1), MT(2), PCG(1)}
			}
			s := apart(pass, worker)
			return []*Gen{MT(uint32(s)), Python(uint64(s)), MT(uint32(s + 7)), PCG(uint64(s))}
		}, Fetch: draw(3000)})
	t0 := time.Now()
	for range 500 {
		o.Pass(Train)
	}
	r.Seal()
	r.W.Close()
	fmt.Println("written in", time.Since(t0))
	os.Rename(r.Dir, dir)
}

func TestLargeRead(t *testing.T) {
	dir := os.Getenv("LARGE")
	if dir == "" {
		t.Skip()
	}
	run, err := traces.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	r, err := analyze.Run(run)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "VmHWM") {
			fmt.Println(l)
		}
	}
	fmt.Println("analysed in", time.Since(t0))
	for _, f := range r.Findings {
		fmt.Println(f.Certainty, f.Title, f.Cost)
	}
	for _, c := range r.Checks {
		fmt.Println(c)
	}
}
