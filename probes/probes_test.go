package probes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes/probe"
)

// A folder that declares a probe and is not in List would be built and never run.
func TestListed(t *testing.T) {
	declares := regexp.MustCompile(`(?m)^var Probe = probe\.Probe\{`)
	var listed []string
	for _, p := range List {
		listed = append(listed, p.Name)
		if p.Doc == "" || p.Start == nil || p.Tier == "" {
			t.Errorf("probe %q does not describe itself", p.Name)
		}
	}
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !declares.Match(source) {
			continue
		}
		found++
		if name := filepath.Dir(f); !slices.Contains(listed, name) {
			t.Errorf("probes/%s holds a probe that probes.List does not name", name)
		}
	}
	if found != len(List) {
		t.Errorf("%d folders hold a probe, %d are listed", found, len(List))
	}
}

// The eBPF programs count for the processes that one of them follows: whoever
// forgets to say so, or leaves that one out, finds it here and not in a trace
// without rows.
func TestOrder(t *testing.T) {
	const follower = "process"
	for _, p := range List {
		if want := p.Tier == probe.Kernel && p.Name != follower; slices.Contains(p.After, follower) != want {
			t.Errorf("probe %s comes after %q; of the kernel tier and not %s itself: %v", p.Name, p.After, follower, want)
		}
		if p.Late && p.Tier != probe.Kernel {
			t.Errorf("probe %s is late, and not of the kernel tier", p.Name)
		}
		for _, q := range List {
			if p.Late && slices.Contains(q.After, p.Name) {
				t.Errorf("probe %s comes after %s, which is late", q.Name, p.Name)
			}
		}
	}
	reversed := slices.Clone(List)
	slices.Reverse(reversed)
	for _, list := range [][]*probe.Probe{List, reversed} {
		ordered, err := InOrder(list)
		if err != nil || len(ordered) != len(list) {
			t.Fatalf("%d of %d, %v", len(ordered), len(list), err)
		}
		started := map[string]bool{}
		for _, p := range ordered {
			for _, name := range p.After {
				if !started[name] {
					t.Errorf("%s starts before %s", p.Name, name)
				}
			}
			started[p.Name] = true
		}
	}
}

func TestInOrder(t *testing.T) {
	for list, want := range map[string]string{
		"":              "",
		"a b c":         "a b c",
		"b<a a":         "a b",
		"c<b b<a a d":   "a d b c",
		"c<a,b a b":     "a b c",
		"a<b":           "error", // b is not listed
		"a<b b<a c":     "error",
		"a<a":           "error",
		"a b a":         "error", // twice
		"a b<a c<missy": "error",
	} {
		var probes []*probe.Probe
		for _, f := range strings.Fields(list) {
			name, after, some := strings.Cut(f, "<")
			p := &probe.Probe{Name: name}
			if some {
				p.After = strings.Split(after, ",")
			}
			probes = append(probes, p)
		}
		ordered, err := InOrder(probes)
		var names []string
		for _, p := range ordered {
			names = append(names, p.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
	}
}
