package accept

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Read reads a file strictly: what it does not know is an error that names the
// line. rules are the ids that there are.
func Read(file string, rules []string) ([]Entry, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parse(file, text, rules)
}

func parse(file string, text []byte, rules []string) ([]Entry, error) {
	var document struct {
		Accept []struct {
			Rule   string `toml:"rule"`
			At     string `toml:"at"`
			Reason string `toml:"reason"`
		} `toml:"accept"`
	}
	d := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := d.Decode(&document); err != nil {
		return nil, located(file, err)
	}
	lines, err := linesOf(text)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	var entries []Entry
	for i, a := range document.Accept {
		e := Entry{Rule: a.Rule, At: strings.TrimSpace(a.At), Reason: strings.TrimSpace(a.Reason), Place: fmt.Sprintf("%s:%d", file, lines[i])}
		switch {
		case e.Rule == "":
			return nil, fmt.Errorf("%s: which rule? rule = \"order-repeats\"", e.Place)
		case !slices.Contains(rules, e.Rule):
			return nil, fmt.Errorf("%s: no rule %q; `dptrace explain` lists them", e.Place, e.Rule)
		case e.Reason == "":
			return nil, fmt.Errorf("%s: why is %s accepted? reason = \"...\"", e.Place, e.Rule)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// located names the line of an error of the TOML library.
func located(file string, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		e := unknown.Errors[0]
		line, _ := e.Position()
		return fmt.Errorf("%s:%d: unknown key %q: there are rule, at and reason of [[accept]]", file, line, strings.Join(e.Key(), "."))
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, _ := wrong.Position()
		return fmt.Errorf("%s:%d: %w", file, line, err)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// linesOf gives the line of each entry of a document that has been decoded: of
// its [[accept]], or, where all are in one array, of the key. A single [accept],
// which the library takes for one of them, is an error.
func linesOf(text []byte) (lines []int, err error) {
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		key := e.Key()
		if !key.Next() || !strings.EqualFold(string(key.Node().Data), "accept") { // as the library compares
			continue // rule, at and reason are keys too
		}
		line := p.Shape(key.Node().Raw).Start.Line
		if name := string(key.Node().Data); name != "accept" {
			return nil, fmt.Errorf("%d: unknown key %q: it is accept", line, name)
		}
		switch e.Kind {
		case unstable.ArrayTable:
			lines = append(lines, line)
		case unstable.KeyValue:
			if e.Value().Kind != unstable.Array {
				return nil, fmt.Errorf("%d: an entry begins with [[accept]]", line)
			}
			for values := e.Value().Children(); values.Next(); {
				lines = append(lines, line)
			}
		default:
			return nil, fmt.Errorf("%d: [accept] has to be [[accept]]", line)
		}
	}
	return lines, p.Error()
}
