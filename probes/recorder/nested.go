package recorder

import (
	"github.com/dptrace/dptrace/shim"
)

// stepAside makes way for a recording that we are part of: it sees everything
// that we would, so the command simply runs in our place. It returns only if
// there is none, or if that fails; stale are hooks of recorders that died.
func stepAside(o Options, program string) (stale []string, err error) {
	dirs, sessions := shim.Find(environment())
	for i, s := range sessions {
		if !sessionAlive(s.Lock) {
			stale = append(stale, dirs[i])
			continue
		}
		if !o.Quiet {
			o.say("already being recorded by an outer dptrace: this one steps aside")
		}
		restoreSignals(ignoredAtStart())
		return nil, execFailure(program, execute(program, o.Command, environment()))
	}
	return stale, nil
}
