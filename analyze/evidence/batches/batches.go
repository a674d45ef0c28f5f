// Package batches is the batches of each pass: what its sampler asked for, what
// each worker fetched, and what reached the training loop and was stepped on.
// Each table is a source of its own, so that a rule has no gap where it does not
// look.
package batches

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// key of a pass as its process recorded it.
type key struct{ proc, loader, pass uint32 }

// process that recorded.
type process struct {
	part *traces.Part
	proc uint32
}

// share is a worker's share of a pass, as the process that fetches counts.
type share struct {
	key
	worker int32
}

// byPart is what the rows of some parts say, by pass, by share or by sampler.
type byPart[K comparable, V any] map[*traces.Part]map[K]*V

// part is what those of one part say.
func (b byPart[K, V]) part(p *traces.Part) map[K]*V {
	if b[p] == nil {
		b[p] = map[K]*V{}
	}
	return b[p]
}

// merge takes over what is known of other parts.
func (b byPart[K, V]) merge(o byPart[K, V]) { maps.Copy(b, o) }

// at is what is known under a key, so that more may be added.
func at[K comparable, V any](rows map[K]*V, k K) *V {
	v := rows[k]
	if v == nil {
		v = new(V)
		rows[k] = v
	}
	return v
}

// ByPass is what is known of each pass.
type ByPass[V any] map[*timeline.Pass]*V

// Of a pass; where nothing is known of it, an empty one.
func (m ByPass[V]) Of(p *timeline.Pass) *V { return get(m, p) }

// ByWorker is what is known of each worker in each pass.
type ByWorker[V any] map[*timeline.WorkerPass]*V

// Of a worker in a pass; where nothing is known of it, an empty one.
func (m ByWorker[V]) Of(w *timeline.WorkerPass) *V { return get(m, w) }

func get[K comparable, V any](m map[K]*V, k K) *V {
	if v := m[k]; v != nil {
		return v
	}
	return new(V)
}

// byPass sorts what is known for the passes of a timeline.
func byPass[V any](t *timeline.Timeline, rows byPart[key, V]) ByPass[V] {
	found := ByPass[V]{}
	for _, l := range t.Loaders {
		here := rows[l.Process.Part]
		for _, p := range l.Passes {
			if v := here[key{l.Process.Proc, p.Object, p.Recorded}]; v != nil {
				found[p] = v
			}
		}
	}
	return found
}

// byWorker sorts what is known for the workers of a timeline.
func byWorker[V any](t *timeline.Timeline, rows byPart[share, V]) ByWorker[V] {
	found := ByWorker[V]{}
	for part, here := range rows {
		for k, v := range here {
			if w := t.Worker(part, k.proc, k.loader, k.pass, k.worker); w != nil {
				found[w] = v
			}
		}
	}
	return found
}
