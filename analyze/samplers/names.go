package samplers

import (
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// Name is the class that decides on which samples come, without its module: the
// innermost one, whatever is wrapped around it.
func Name(l *traces.Loader) string {
	all := chain(l)
	return Short(class(all[len(all)-1]))
}

// Class is that of the sampler that Path names, without its module: what has an
// epoch, a seed, a generator.
func Class(l *traces.Loader) string {
	if !PlainBatches(l) && table[l.Sampler].order != Shuffles {
		return Short(l.BatchSampler)
	}
	return Short(l.Sampler)
}

// Path is how the program reaches the sampler of a loader. The loader's own is
// another one where it was given a batch sampler, torch's or not: then it has no
// batch size.
func Path(l *traces.Loader) string {
	if l.BatchSampler == "" || PlainBatches(l) && !GivenBatches(l) {
		return "loader.sampler"
	}
	return "loader.batch_sampler.sampler"
}

// chain is the classes from the batch sampler inwards, one at least. Where the
// program gives a batch sampler that holds none, the loader of an older trace has
// a SequentialSampler that nobody uses.
func chain(l *traces.Loader) []string {
	switch {
	case l.Samplers != "":
		return strings.Split(l.Samplers, " > ")
	case !PlainBatches(l) && l.Sampler == sequential:
		return []string{l.BatchSampler}
	}
	return []string{l.BatchSampler, l.Sampler}
}

// class without the base that a chain tells with it: "mine.Sampler(torch...)".
func class(link string) string {
	name, _, _ := strings.Cut(link, "(")
	return name
}

// short is a class without its module.
// Short is a class without its module.
func Short(qualified string) string { return qualified[strings.LastIndexByte(qualified, '.')+1:] }
