// Package finding is what the analysis says: the findings of rules, and for
// each rule and loader whether it could be judged. The JSON tags are the
// report's stable interface (schema dptrace.report/1).
package finding

import "encoding/json"

// Certainty is how sure a finding is. The order counts: a report fails at or
// above a certainty.
type Certainty int

const (
	Note   Certainty = iota + 1 // a fact worth knowing; folded away in text
	Likely                      // statistical or a forecast; the number behind it is printed
	Proven                      // bit-identical or counted, mechanism named, replayable by hand from the evidence
)

func (c Certainty) String() string {
	switch c {
	case Proven:
		return "proven"
	case Likely:
		return "likely"
	case Note:
		return "note"
	}
	return "unknown"
}

// MarshalText writes proven, likely or note.
func (c Certainty) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Finding is one thing that is wrong with one loader.
type Finding struct {
	Rule      string     `json:"rule"`
	DP        string     `json:"dp,omitempty"` // number of the failure mode in the catalogue; "" if it has none
	Certainty Certainty  `json:"certainty"`
	Title     string     `json:"title"` // what is wrong and how much, in the user's words
	Loader    Loader     `json:"loader"`
	Evidence  []Evidence `json:"evidence"`     // the first line is the one to show where there is room for one
	Cost      string     `json:"cost"`         // in the user's unit: draws, samples, epochs, MB, ms per step
	Fix       string     `json:"fix"`          // code, or what to do
	Verify    string     `json:"verify"`       // how to see that the fix worked
	NotABugIf string     `json:"not_a_bug_if"` // the excuses that nothing observed has excluded; "" for what is proven
	Proof     string     `json:"proof"`        // where the evidence comes from: hook, procfs, kernel

	Accepted string `json:"accepted,omitempty"` // why the user wants it as it is, by dptrace.toml; "" not accepted

	// Facts is what a rule has learned on the way, for its own excuses: they are asked after it has judged.
	Facts any `json:"-"`
}

// Loader says which DataLoader a finding is about.
type Loader struct {
	ID   int    `json:"id"`   // from 1 in its run; the same loader on several ranks has one
	At   string `json:"at"`   // file:line of DataLoader(...)
	Role string `json:"role"` // train, eval, unknown
}

// Evidence is one fact, and the rows of the trace that it rests on.
type Evidence struct {
	Text   string `json:"text"`
	Refs   []Ref  `json:"refs"`
	Detail bool   `json:"detail,omitempty"` // for programs and for who asks: key words, long lists
}

// Ref is one row of the trace.
type Ref struct {
	Part  string `json:"part,omitempty"` // folder of the part in the trace
	Table string `json:"table"`
	Seq   uint64 `json:"seq"`
}

// Status is what came of a rule at one loader.
type Status string

const (
	Found         Status = "found"          // proven, likely, or no more than a note
	Clean         Status = "clean"          // enough was seen, and it is right
	CannotTell    Status = "cannot-tell"    // Reason says why
	NotApplicable Status = "not-applicable" // the rule is not about such a loader: one rank, no workers, an evaluation
)

// Check is what came of one rule at one loader.
type Check struct {
	Rule   string `json:"rule"`
	Loader int    `json:"loader"` // Loader.ID; 0: the whole run
	At     string `json:"at,omitempty"`
	Role   string `json:"role,omitempty"`
	Status Status `json:"status"`
	Reason string `json:"reason"` // of found and clean: how much was compared
}

// MarshalJSON writes empty lists as [], which is easier on readers than null.
func (f Finding) MarshalJSON() ([]byte, error) {
	type plain Finding
	if f.Evidence == nil {
		f.Evidence = []Evidence{}
	}
	return json.Marshal(plain(f))
}

// MarshalJSON writes empty lists as [].
func (e Evidence) MarshalJSON() ([]byte, error) {
	type plain Evidence
	if e.Refs == nil {
		e.Refs = []Ref{}
	}
	return json.Marshal(plain(e))
}
