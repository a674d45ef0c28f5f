package reseed

import (
	"strings"
	"unicode"
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
			if !identifier(strings.TrimSuffix(rest[1:n], "()")) {
				return "", false
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

// identifier reports whether s is a name as code has it. The hook also says
// "a random.Random that no variable leads to" and "pkg.RNG (2)".
func identifier(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}

// cached is the function, as pkg.name, whose lru_cache a path begins at; "" if
// it begins at none.
func cached(path string) string {
	function, ok := strings.CutPrefix(path, "lru_cache of ")
	if !ok {
		return ""
	}
	function, _, ok = strings.Cut(function, "()")
	if !ok {
		return ""
	}
	for name := range strings.SplitSeq(function, ".") {
		if !identifier(name) {
			return "" // of a function that is made by another one
		}
	}
	return function
}

// member is the container that the last step of a path is an item of; "" if it
// is none. The keywords of a partial are names in the code that makes it.
func member(path string) string {
	for i := range len(path) {
		if path[i] == '[' && item(path[i:]) == len(path)-i && !strings.HasSuffix(path[:i], ".keywords") {
			return path[:i]
		}
	}
	return ""
}

// lastName is the name that a generator is given where it is made: the last word
// of a path. It is "" for what a function returns or a container holds, which
// has no name there.
func lastName(path string) string {
	if member(path) != "" {
		return ""
	}
	if root, _ := split(path); !identifier(root) && !strings.HasPrefix(path, "lru_cache of ") {
		return ""
	}
	path = strings.TrimRight(path, ">]'\"")
	i := strings.LastIndexAny(path, ".<[ '\"")
	if !identifier(path[i+1:]) {
		return ""
	}
	return path[i+1:]
}
