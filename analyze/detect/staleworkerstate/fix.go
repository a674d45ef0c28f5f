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
	case strings.Count(s.Path, ".") > 1:
		return fresh + "\n\n# or, if that object stays and nothing but this value of it is set anew:\n" + s.shared(kind)
	}
	return s.shared(kind) + fmt.Sprintf("\n\n# or, at %s, workers that are started anew for each pass\n"+
		"DataLoader(..., persistent_workers=False)", s.loader.At())
}

// shared is code that keeps a number in shared memory.
func (s *stale) shared(kind string) string {
	r, name := &s.Parent[0], last(s.Path)
	value := r.Value
	if strings.HasSuffix(value, "inf") || value == "nan" {
		value = fmt.Sprintf("float('%s')", value)
	}
	where, owner := fmt.Sprintf("before the DataLoader of %s is made", s.loader.At()), strings.TrimSuffix(s.Path, name)
	if r.File != "" {
		where, owner = timeline.Place(s.loader.Process.Cwd, r.File, r.Line), "self."
	}
	made := fmt.Sprintf("%s%s = torch.tensor(%s, dtype=%s).share_memory_()", owner, name, value, kind)
	read := map[string]string{"torch.int64": "int", "torch.float64": "float", "torch.bool": "bool"}[kind]
	return fmt.Sprintf(`# %s: in shared memory, where the workers see what the training sets
%s
# where it is set between the passes, or in the method that does it
%s.fill_(value)  # instead of = value
# where it is read%s
%s = %s(self.%s)`, where, made, s.Path, s.reader(), name, read, name)
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
