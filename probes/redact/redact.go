// Package redact takes secrets out of what is recorded of command lines: traces are
// shared, and a password on a command line is one in the trace.
package redact

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Mark stands in place of a secret.
const Mark = "[redacted]"

// Rules say what is taken out.
type Rules struct {
	none  bool
	extra []*regexp.Regexp // the user's own
}

// Values are what Parse was given.
func (r *Rules) Values() (values []string) {
	if r == nil {
		return nil
	}
	if r.none {
		values = append(values, None)
	}
	for _, pattern := range r.extra {
		values = append(values, pattern.String())
	}
	return values
}

// None is the value of --redact that takes nothing out.
const None = "none"

// A nil *Rules takes out what looks like a secret, and no more.
func (r *Rules) off() bool { return r != nil && r.none }

// Parse reads the values of --redact: regular expressions of more to take out (of an
// expression with a group, the group), or None.
func Parse(values []string) (r *Rules, err error) {
	r = &Rules{}
	for _, v := range values {
		if v == None {
			r.none = true
			continue
		}
		pattern, err := regexp.Compile(v)
		if err != nil {
			return nil, fmt.Errorf("--redact %q: it is %q or a regular expression: %w", v, None, err)
		}
		r.extra = append(r.extra, pattern)
	}
	return r, nil
}

// Args is a command line without its secrets.
func (r *Rules) Args(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		switch {
		case r.off():
			out[i] = r.own(a)
			continue
		case i > 0 && isName(args[i-1]) && secret(args[i-1], a) && !strings.HasPrefix(a, "-"):
			out[i] = Mark
			continue
		}
		if strings.ContainsAny(a, " \t\n") { // of a shell, or code
			a = r.words(a)
		} else {
			a = assigned(a)
		}
		out[i] = r.own(shapes(a))
	}
	return out
}

// Line is a command line of which only the words are known, joined by blanks.
func (r *Rules) Line(line string) string {
	if r.off() {
		return r.own(line)
	}
	return r.own(shapes(r.words(line)))
}

// Text is any text without what looks like a secret wherever it stands.
func (r *Rules) Text(text string) string {
	if r.off() {
		return r.own(text)
	}
	return r.own(shapes(text))
}

// Value is what a variable of this name holds, unless that is a secret.
func (r *Rules) Value(name, value string) string {
	switch {
	case value == "":
		return value
	case !r.off() && secret(name, value):
		return Mark
	}
	return r.Text(value)
}

var blanks = regexp.MustCompile(`[ \t\n]+`)

// words takes out of the words of a text what it would of arguments.
func (r *Rules) words(text string) string {
	var b strings.Builder
	before, at := "", 0
	var quote byte // that a secret of several words began with
	add := func(word string) {
		_, value, _ := strings.Cut(word, "=")
		switch {
		case quote != 0:
			if i := strings.IndexByte(word, quote); i >= 0 {
				quote = 0
				b.WriteString(word[i+1:])
			}
			return
		case isName(before) && secret(before, word) && !strings.HasPrefix(word, "-"):
			value = word
			b.WriteString(Mark)
		default:
			clean := assigned(word)
			if b.WriteString(clean); clean == word {
				value = ""
			}
		}
		quote = opened(value)
		before = word
	}
	for _, gap := range blanks.FindAllStringIndex(text, -1) {
		add(text[at:gap[0]])
		b.WriteString(text[gap[0]:gap[1]])
		at = gap[1]
	}
	add(text[at:])
	return b.String()
}

// own applies the user's expressions.
func (r *Rules) own(text string) string {
	if r == nil {
		return text
	}
	for _, pattern := range r.extra {
		text = replaceGroup(pattern, text)
	}
	return text
}

func replaceGroup(pattern *regexp.Regexp, text string) string {
	var b strings.Builder
	at := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(text, -1) {
		from, to := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			from, to = m[2], m[3]
		}
		if from == to || from < at {
			continue
		}
		b.WriteString(text[at:from])
		b.WriteString(Mark)
		at = to
	}
	b.WriteString(text[at:])
	return b.String()
}

// isName reports whether an argument names the one after it.
func isName(arg string) bool {
	return len(arg) > 2 && arg[0] == '-' && !strings.Contains(arg, "=")
}

// assigned takes the value out of NAME=VALUE and --name=VALUE if its name says that
// it is a secret.
func assigned(word string) string {
	name, value, ok := strings.Cut(word, "=")
	if !ok || value == "" || !secret(name, value) {
		return word
	}
	rest := ""
	if q := value[0]; q == '\'' || q == '"' {
		if i := strings.IndexByte(value[1:], q); i >= 0 {
			rest = value[i+2:]
		}
	}
	return name + "=" + Mark + rest
}

// opened is the quotation mark that a word begins with and does not hold again; 0 none.
func opened(word string) byte {
	if word == "" || word[0] != '\'' && word[0] != '"' || strings.IndexByte(word[1:], word[0]) >= 0 {
		return 0
	}
	return word[0]
}

// shaped are secrets that are known by what they are made of, each with the part to
// take out as its first group.
var shaped = []*regexp.Regexp{
	regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@'"]*:([^/\s@'"]+)@`), // user:password of a URL
	regexp.MustCompile(`\b((?:gh[oprsu]_|github_pat_|glpat-|hf_|api_org_|npm_|pypi-|dckr_pat_|xox[abeoprs]-|sk-)[A-Za-z0-9_-]{16,})`),
	regexp.MustCompile(`\b((?:AKIA|ASIA)[A-Z0-9]{16})\b`),                                                            // AWS
	regexp.MustCompile(`\b(AIza[A-Za-z0-9_-]{30,})`),                                                                 // Google
	regexp.MustCompile(`\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+)`),                             // JSON web tokens
	regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9+/=._~-]{16,})`),                                         // HTTP
	regexp.MustCompile(`[?&](?:sig|(?:X-Amz-|X-Goog-)?[Ss]ignature|(?:access_)?token|key)=([A-Za-z0-9%+/=_-]{16,})`), // signed URLs
}

func shapes(text string) string {
	for _, pattern := range shaped {
		text = replaceGroup(pattern, text)
	}
	return text
}

var (
	// always are last words of names that say a secret, whatever stands before them.
	always = map[string]bool{"password": true, "passwd": true, "passphrase": true, "pwd": true, "secret": true, "secrets": true,
		"apikey": true, "credential": true, "credentials": true, "passcode": true}
	// keys are the words before `key` that make it a secret. A training has many
	// other keys: of batches, of columns, of sorting.
	keys = map[string]bool{"api": true, "secret": true, "access": true, "private": true, "auth": true, "encryption": true, "signing": true,
		"account": true, "license": true, "master": true, "ssh": true, "aws": true, "service": true, "subscription": true, "client": true,
		"session": true, "wandb": true, "openai": true, "comet": true, "neptune": true, "hf": true, "anthropic": true, "azure": true, "gcp": true}
	// ofText are the words before `token` that make it one of a text.
	ofText = map[string]bool{"pad": true, "padding": true, "bos": true, "eos": true, "unk": true, "mask": true, "cls": true, "sep": true,
		"special": true, "image": true, "img": true, "begin": true, "end": true, "start": true, "stop": true, "new": true, "prompt": true,
		"trigger": true, "placeholder": true, "first": true, "last": true, "speech": true, "audio": true, "video": true, "text": true,
		"word": true, "class": true, "initializer": true, "modifier": true, "decoder": true, "target": true, "source": true, "per": true,
		"register": true, "learnable": true, "distill": true, "distillation": true, "extra": true, "by": true, "add": true, "blank": true,
		"language": true, "lang": true, "think": true, "separator": true, "sentence": true, "task": true, "dist": true, "unknown": true}
)

// secret reports whether a value is a secret by the name that it has.
func secret(name, value string) bool {
	words := wordsOf(name)
	if len(words) == 0 || plain(value) {
		return false
	}
	last, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	if last == "id" && before == "key" { // AWS_ACCESS_KEY_ID
		last, before = "key", words[max(len(words)-3, 0)]
	}
	switch {
	case always[last]:
		return true
	case last == "key":
		return keys[before] || before != "" && name == strings.ToUpper(name)
	case last == "token":
		return !ofText[before] && !marks(value)
	case last == "auth":
		return len(value) >= 16 || strings.Contains(value, ":")
	}
	return false
}

// plain are values that say yes or no, or nothing.
func plain(value string) bool {
	switch strings.ToLower(strings.Trim(value, `'"`)) {
	case "", "true", "false", "yes", "no", "on", "off", "none", "null", "0", "1":
		return true
	}
	return strings.HasPrefix(value, "$") || strings.HasPrefix(value, Mark) // a variable, of which only the name is there
}

// marks reports whether a value is a token of a text: <pad>, [MASK], </s>.
func marks(value string) bool {
	return strings.HasPrefix(value, "<") || strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]")
}

// wordsOf splits a name at signs and where capitals begin.
func wordsOf(name string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	lower := false
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			end()
		case unicode.IsUpper(c) && lower:
			end()
			word = append(word, c)
		default:
			word = append(word, c)
		}
		lower = unicode.IsLower(c)
	}
	end()
	return words
}
