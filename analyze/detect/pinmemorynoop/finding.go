package pinmemorynoop

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

const array = "numpy.ndarray"

func (s *seen) finding(certainty finding.Certainty) finding.Finding {
	return finding.Finding{
		Certainty: certainty,
		Title:     s.title(),
		Evidence:  s.evidence(),
		Cost:      s.cost(),
		Fix:       s.fix(),
		Facts:     s,
	}
}

// pageable is how many tensors or arrays of a batch were left, and their bytes.
func (s *seen) pageable() (what string, bytes int64) {
	l := &s.left[0]
	if l.Left > 0 {
		return words.Count(int(l.Left), "tensor"), l.LeftBytes
	}
	return words.Count(int(l.Arrays), "NumPy array"), l.ArrayBytes
}

func (s *seen) title() string {
	l := &s.left[0]
	what, bytes := s.pageable()
	if !s.whole() {
		return fmt.Sprintf("pin_memory=True pins %s of a batch and leaves %s: torch does not look into %s", words.Bytes(l.ReachedBytes),
			words.Bytes(bytes), class(l.Holder))
	}
	return fmt.Sprintf("pin_memory=True pins nothing of these batches: torch does not look into %s, and %s (%s a batch) in it stay pageable",
		class(l.Holder), what, words.Bytes(bytes))
}

// class as it is called where it is used.
func class(name string) string { return words.Last(name) }

func (s *seen) evidence() []finding.Evidence {
	l := &s.left[0]
	what, bytes := s.pageable()
	where := "the batch is one"
	if l.Path != "" {
		where = "batch" + l.Path + " is one"
	}
	text := fmt.Sprintf("Looked at as they were handed over: in %s %s (%s) were in an object of class %s, which the pin step gives back as "+
		"it is. It is no tensor, mapping or sequence and has no pin_memory(); %s.", words.Of(len(s.left), len(s.all), "batch"), what,
		words.Bytes(bytes), l.Holder, where)
	if l.Left == 0 {
		text = fmt.Sprintf("Looked at as they were handed over: in %s there was no tensor, but %s (%s), which the pin step gives back "+
			"as they are.", words.Of(len(s.left), len(s.all), "batch"), what, words.Bytes(bytes))
	}
	list := []finding.Evidence{{Text: text}}
	for i := range min(len(s.left), 4) {
		look := &s.left[i]
		list[0].Refs = append(list[0].Refs, finding.Ref{Part: look.Of.Process.Part.Name, Table: "pin", Seq: look.Seq})
	}
	if l.Left > 0 {
		list = append(list, finding.Evidence{Text: fmt.Sprintf("is_pinned() is False for %s. To see it: `print(batch%s)`.",
			words.Of(int(l.Left), int(l.Left), "tensor"), l.Path+first(l.Fields)+".is_pinned()")})
	}
	if l.Reached > 0 {
		list = append(list, finding.Evidence{Text: fmt.Sprintf("It got to %s of the same batch (%s).", words.Count(int(l.Reached), "tensor"),
			words.Bytes(l.ReachedBytes))})
	}
	if at := s.pins(); at != "" {
		list = append(list, finding.Evidence{Text: "The function at " + s.place(at) + " calls pin_memory() itself."})
	}
	switch s.unsure() {
	case "getattr":
		list = append(list, finding.Evidence{Text: "The class has a __getattr__ of its own, which may have a pin_memory to give."})
	case "replaced":
		list = append(list, finding.Evidence{Text: "torch's pin_memory() is replaced by another function here."})
	case "large":
		list = append(list, finding.Evidence{Text: "The batch has more parts than were looked at."})
	}
	return list
}

// first of some fields, as an attribute; "" of an item.
func first(fields string) string {
	name, _, _ := strings.Cut(fields, ",")
	switch {
	case strings.HasPrefix(name, "["):
		return name
	case strings.HasSuffix(name, "[]"):
		return "." + strings.TrimSuffix(name, "[]") + "[0]"
	case name == "" || strings.ContainsAny(name, "?{"):
		return ""
	}
	return "." + name
}

func (s *seen) place(at string) string {
	file, line, _ := strings.Cut(at, ":")
	n, _ := strconv.Atoi(line) // 0 is no line
	return timeline.Place(s.left[0].Of.Process.Cwd, file, int32(n))
}

func (s *seen) cost() string {
	_, bytes := s.pageable()
	batches := 0
	for _, p := range s.Passes() {
		batches += p.Delivered
	}
	cost := fmt.Sprintf("%s of each batch are not in pinned memory", words.Bytes(bytes))
	if batches > 0 {
		cost += fmt.Sprintf(", %s in %s", words.Bytes(bytes*int64(batches)), words.Count(batches, "batch"))
	}
	cost += ". A copy from there to the device goes through a buffer of the driver's, the thread waits for it, and " +
		"non_blocking=True changes nothing"
	ranks := detect.Of(s.Case, copies.Source).At(s.Loaders)
	if worst := ranks.Worst(copies.Staged); worst != nil && worst.Sure(copies.Staged) { // the kernel tier has seen the copies
		cost += ". Copies from memory that is not pinned block the training thread for " + worst.Waits(copies.Staged) + ranks.On(worst)
	}
	return cost
}

// builtin classes, which cannot be given a method.
var builtin = map[string]string{
	"types.SimpleNamespace": "return vars(batch)  # a dict: torch pins what is in it",
	"builtins.set":          "return list(batch)  # torch pins what is in a list",
	"builtins.frozenset":    "return list(batch)  # torch pins what is in a list",
	array:                   "return torch.from_numpy(batch)  # a tensor over the same memory: torch pins it",
}

func (s *seen) fix() string {
	l := &s.left[0]
	if code, ok := builtin[l.Holder]; ok {
		collate := l.Of.First().Collate
		if collate == "" || strings.HasPrefix(collate, "torch.") {
			collate = "the collate function"
		}
		what := ""
		if l.Path != "" {
			what = fmt.Sprintf(" (batch%s)", l.Path)
		}
		return fmt.Sprintf("# %s, in place of the %s%s:\n%s", collate, class(l.Holder), what, code)
	}
	fields := strings.Split(l.Fields, ",")
	if l.Fields == "" {
		fields = nil
	}
	var code strings.Builder
	fmt.Fprintf(&code, "# class %s: the pin step calls this method if there is one\ndef pin_memory(self):\n", class(l.Holder))
	if l.Made == "frozen" {
		code.WriteString("    return dataclasses.replace(self")
		for _, f := range fields {
			name, value := pinned(f)
			fmt.Fprintf(&code, ", %s=%s", name, value)
		}
		code.WriteString(")")
		return code.String()
	}
	for _, f := range fields {
		name, value := pinned(f)
		fmt.Fprintf(&code, "    self.%s = %s\n", name, value)
	}
	code.WriteString("    return self")
	return code.String()
}

// pinned is the name of a field, and what it is to become.
func pinned(field string) (name, value string) {
	switch name = strings.TrimRight(field, "[]{}?"); {
	case strings.HasSuffix(field, "[]"):
		return name, fmt.Sprintf("[t.pin_memory() for t in self.%s]", name)
	case strings.HasSuffix(field, "{}"):
		return name, fmt.Sprintf("{k: t.pin_memory() for k, t in self.%s.items()}", name)
	case strings.HasSuffix(field, "?"):
		return name, fmt.Sprintf("self.%s.pin_memory()  # give its class such a method, too", name)
	}
	return name, fmt.Sprintf("self.%s.pin_memory()", name)
}
