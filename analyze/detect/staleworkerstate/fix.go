package staleworkerstate

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// fix is shared memory for a number, which holds as long as the object that has
// it stays; and for all else workers that live no longer than a pass.
func (s *stale) fix() string {
	fresh := fmt.Sprintf("# %s: start the workers anew for each pass, so that they see the value that is set before it\n"+
		"DataLoader(..., persistent_workers=False)", s.loader.At())
	kind := s.kind()
	switch {
	case kind == "" || strings.HasSuffix(s.Path, "]"): // of a dictionary: it may be the caller's, and read in many ways
		return fresh
	case s.outside():
		return s.handedOver(kind)
	case strings.Count(s.Path, ".") > 1:
		return fresh + "\n\n# or, if that object stays and nothing but this value of it is set anew:\n" + s.inShared(kind)
	}
	return s.inShared(kind) + fmt.Sprintf("\n\n# or, at %s, workers that are started anew for each pass\n"+
		"DataLoader(..., persistent_workers=False)", s.loader.At())
}

// outside reports whether it hangs neither on the dataset nor on the collate
// function: a global, a class attribute, a variable of a closure.
func (s *stale) outside() bool {
	return strings.Contains(s.Path, "<") || !strings.HasPrefix(s.Path, "dataset.") && !strings.HasPrefix(s.Path, "collate_fn")
}

// handedOver is code that gives workers what is outside of the dataset: those of
// spawn and forkserver would not even see it if they were started anew.
func (s *stale) handedOver(kind string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(last(s.Path), "<closure "), ">")
	if i := strings.LastIndex(name, "closure "); i >= 0 {
		name = name[i+len("closure "):]
	}
	code := fmt.Sprintf(`# before the DataLoader of %s is made: in shared memory, and on the dataset, so that the workers have it
dataset.%s = torch.tensor(%s, dtype=%s).share_memory_()

# where it is set between the passes
dataset.%s.fill_(value)  # instead of %s = value
# where it is read
%s = %s(self.%s)`, s.loader.At(), name, number(s.Parent[0].Value), kind, name, s.Path, name, python[kind], name)
	if s.object.StartMethod != "fork" {
		return code
	}
	return code + fmt.Sprintf("\n\n# or, at %s, workers that are started anew for each pass\nDataLoader(..., persistent_workers=False)",
		s.loader.At())
}

// python is the types of Python, by torch's.
var python = map[string]string{"torch.int64": "int", "torch.float64": "float", "torch.bool": "bool"}

// number as code.
func number(value string) string {
	if strings.HasSuffix(value, "inf") || value == "nan" {
		return fmt.Sprintf("float('%s')", value)
	}
	return value
}

// inShared is code that keeps a number in shared memory.
func (s *stale) inShared(kind string) string {
	r, name := &s.Parent[0], last(s.Path)
	where, owner := fmt.Sprintf("before the DataLoader of %s is made", s.loader.At()), strings.TrimSuffix(s.Path, name)
	if r.File != "" {
		where, owner = timeline.Place(s.loader.Process.Cwd, r.File, r.Line), "self."
	}
	made := fmt.Sprintf("%s%s = torch.tensor(%s, dtype=%s).share_memory_()", owner, name, number(r.Value), kind)
	return fmt.Sprintf(`# %s: in shared memory, where the workers see what the training sets
%s
# where it is set between the passes, or in the method that does it
%s.fill_(value)  # instead of = value
# where it is read%s
%s = %s(self.%s)`, where, made, s.Path, s.reader(), name, python[kind], name)
}

// reader is the function that reads an attribute of the dataset itself, or of
// the collate function.
func (s *stale) reader() string {
	switch {
	case strings.Count(s.Path, ".") > 1:
		return ""
	case strings.HasPrefix(s.Path, "collate_fn"):
		return ", in __call__"
	case s.object.Iterable:
		return ", in __iter__"
	}
	return ", in __getitem__"
}

// kind is torch's type for all values that it had; "": there is none.
func (s *stale) kind() (kind string) {
	kinds := map[string]string{"int": "torch.int64", "float": "torch.float64", "bool": "torch.bool"}
	for i := range s.Parent {
		now := kinds[strings.TrimPrefix(s.Parent[i].Class, "builtins.")]
		switch {
		case kind == "" && i == 0 || kind == now:
			kind = now
		case kind == "torch.int64" && now == "torch.float64", kind == "torch.float64" && now == "torch.int64":
			kind = "torch.float64"
		default:
			return ""
		}
	}
	return kind
}
