package reseed

import (
	"strings"
)

// expression turns the path of a generator, as the hook names it, into Python
// that reaches it from root (what the first word of the path stands for). It is
// false for what has no name outside of a running function, and for members of
// sets.
//
// Besides attributes and items a path may have the steps <closure NAME> and
// <default NAME> (of a function), <local NAME> and <yield from> (of a running
// generator).
func expression(path, root string) (string, bool) {
	_, rest := split(path)
	e := root
	for rest != "" {
		switch rest[0] {
		case '<':
			end := strings.IndexByte(rest, '>')
			if end < 0 {
				return "", false
			}
			kind, name, _ := strings.Cut(rest[1:end], " ")
			switch kind {
			case "closure":
				e += ".__closure__[" + e + ".__code__.co_freevars.index('" + name + "')].cell_contents"
			case "default":
				e = "inspect.signature(" + e + ").parameters['" + name + "'].default"
			default:
				return "", false
			}
			rest = rest[end+1:]
		case '[':
			n := item(rest)
			if n < 0 {
				return "", false
			}
			e, rest = e+rest[:n], rest[n:]
		case '.':
			n := 1
			for n < len(rest) && rest[n] != '.' && rest[n] != '[' && rest[n] != '<' {
				n++
			}
			e, rest = e+rest[:n], rest[n:]
		default:
			return "", false
		}
	}
	return e, true
}

// split a path into its first word and the rest.
func split(path string) (root, rest string) {
	for i := range len(path) {
		if path[i] == '.' || path[i] == '[' || path[i] == '<' {
			return path[:i], path[i:]
		}
	}
	return path, ""
}

// item is the length of the [...] that s begins with; -1 if it does not end.
// What is in it is a number or a string as Python prints it.
func item(s string) int {
	var quote byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ']':
			return i + 1
		}
	}
	return -1
}

// module is the part of a path that names the module in which a generator
// hangs. Where that cannot be told, it is the package: its modules are loaded in
// a worker that has the generator.
func module(path, owner string) string {
	if path == owner || strings.HasPrefix(path, owner+".") {
		return owner // the holder is the module itself
	}
	if strings.HasPrefix(path, "__main__.") {
		return "__main__"
	}
	// The holder is an object: most often the module of its class.
	for m := owner; m != ""; {
		i := strings.LastIndexByte(m, '.')
		if i < 0 {
			break
		}
		m = m[:i]
		if strings.HasPrefix(path, m+".") {
			return m
		}
	}
	m, _ := split(path)
	return m
}

// lastName is the name under which a generator hangs: the last word of a path.
func lastName(path string) string {
	path = strings.TrimRight(path, ">]'\"")
	i := strings.LastIndexAny(path, ".<[ '\"")
	return path[i+1:]
}
