package memorygrowthcache

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/growth"
	"github.com/dptrace/dptrace/analyze/words"
)

// reserve is the share of what is free that the container may take in all
// processes, by the fix.
const reserve = 0.25

// mostItems is how many items the fix keeps where more would fit.
const mostItems = 100_000

// keep is how many items in each process fit.
func (l *leak) keep() int64 {
	items, bytes, _ := l.grown()
	free := l.free()
	if free < 0 || items <= 0 || bytes <= 0 {
		return 1000
	}
	each := max(bytes/items, 1)
	return max(min(int64(reserve*float64(free))/each/int64(len(l.line.Series)), mostItems), 1)
}

var name = regexp.MustCompile(`^(?:dataset|collate_fn|iterator)\.`)

// expression is how the program's own code names the container.
func (l *leak) expression() string {
	expr := name.ReplaceAllString(l.line.Path, "self.")
	return strings.TrimPrefix(expr, "__main__.")
}

// fix is code that bounds the container.
func (j *judgement) fix(l leak) string {
	expr, n, class := l.expression(), l.keep(), strings.ToLower(l.line.Class)
	place := fmt.Sprintf("# %s: %s, %s items. ", l.name(), l.line.Class, words.Number(most(l.line)))
	switch {
	case l.kind == capped:
		return place + fmt.Sprintf("A smaller maxsize or maxlen: %d fit", n)
	case l.line.Graph:
		return place + fmt.Sprintf("Where it is filled, keep the number and not the graph:\n"+
			"%s.append(loss.item())  # or x.detach().clone() for more than one number", expr)
	case strings.Contains(class, "lru_cache"):
		return place + fmt.Sprintf("At the function:\n@functools.lru_cache(maxsize=%d)", n)
	case strings.HasSuffix(class, "dict"), strings.HasSuffix(class, "counter"):
		return place + fmt.Sprintf("Before it is filled:\nwhile len(%s) >= %d:\n    %s.pop(next(iter(%s)))", expr, n, expr, expr)
	case strings.HasSuffix(class, "set"):
		return place + fmt.Sprintf("Before it is filled:\nwhile len(%s) >= %d:\n    %s.pop()", expr, n, expr)
	case strings.HasSuffix(class, "list") && !strings.Contains(expr, "[*]"), strings.HasSuffix(class, "deque"):
		return place + fmt.Sprintf("Where it is made:\n%s = collections.deque(maxlen=%d)", expr, n)
	case strings.HasSuffix(class, "list"):
		return place + fmt.Sprintf("After each of them is filled, keep the newest:\ndel items[:-%d]", n)
	}
	return place + fmt.Sprintf("Where it is filled, keep the end:\n%s = %s[-%d:]", expr, expr, n)
}

// most items in any process.
func most(line *growth.Line) (n int64) {
	for i := range line.Series {
		points := line.Series[i].Points
		n = max(n, points[len(points)-1].Items)
	}
	return n
}
