// Package words is the English that several rules and the report have in common:
// numbers, lists, counts, sizes.
package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Number with a comma every three digits.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// List joins words: a, b and c; from the fifth on they are counted.
func List(words []string) string {
	const most = 4
	if len(words) > most {
		words = append(slices.Clone(words[:most-1]), fmt.Sprintf("%d more", len(words)-most+1))
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Ints names numbered things: "worker 0", "workers 0 and 1".
func Ints[T int | int64](thing string, numbers []T) string {
	names := Distinct(numbers)
	if len(names) == 1 {
		return thing + " " + names[0]
	}
	return plural(thing) + " " + List(names)
}

// Distinct is each of some numbers once, as text, the lowest first.
func Distinct[T int | int64](numbers []T) []string {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(int64(n), 10)
	}
	return texts
}

func plural(thing string) string {
	if strings.HasSuffix(thing, "s") || strings.HasSuffix(thing, "ch") {
		return thing + "es"
	}
	stem, ok := strings.CutSuffix(thing, "y")
	if ok && !strings.HasSuffix(stem, "a") && !strings.HasSuffix(stem, "e") { // copies, but keys and days
		return stem + "ies"
	}
	return thing + "s"
}

// Of counts a part: "both workers", "all 4 workers", "2 of 3 passes", "the one pass".
func Of(n, all int, thing string) string {
	switch {
	case all == 1:
		return "the one " + thing
	case n == all && all == 2:
		return "both " + plural(thing)
	case n == all:
		return fmt.Sprintf("all %d %s", all, plural(thing))
	}
	return fmt.Sprintf("%d of %d %s", n, all, plural(thing))
}

// Upper makes the first letter a capital.
func Upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Share is "8 of 16 (50 %)".
func Share(n, of int) string {
	if of == 0 {
		return "none"
	}
	return fmt.Sprintf("%d of %d (%.0f %%)", n, of, 100*float64(n)/float64(of))
}
