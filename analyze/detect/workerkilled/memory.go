package workerkilled

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// oom names the memory that was short, once the killer has chosen the worker.
func (o *outcome) oom(d *death) cause {
	p := d.Worker.Process
	c := cause{kind: hostOom, short: "the out-of-memory killer chose it, the machine was out of memory", where: "this machine"}
	from, to := d.span()
	var host *timeline.OomKills
	for _, k := range o.OomKills(p.Part, from, to) {
		if k.Before.Scope == "host" {
			host = &k
			continue
		}
		if k.Kills > 0 && c.kind == hostOom && !(full(host) && !full(&k)) {
			c.kind, c.where, c.limit = cgroupOom, "control group "+k.Before.Path, k.Before.Limit
			c.short = fmt.Sprintf("the out-of-memory killer chose it, %s may use %s", c.where, words.Bytes(c.limit))
			c.say("The out-of-memory counter of %s rose from %d to %d; its limit is %s.",
				c.where, k.Before.OomKills, k.After.OomKills, words.Bytes(c.limit))
			c.refer(ref(p.Part, "limit", k.Before.Seq), ref(p.Part, "limit", k.After.Seq))
		}
	}
	if c.kind == hostOom && host != nil {
		c.limit = host.Before.Limit
		c.say("No control group with a limit counts a kill at that time; the machine has %s.", words.Bytes(c.limit))
		c.refer(ref(p.Part, "limit", host.Before.Seq))
	}
	c.say("The kernel's out-of-memory killer marked pid %d (%s) as its victim.", p.Pid, p.Oom.Comm)
	c.refer(ref(p.Part, "oom", p.Oom.Seq))
	o.users(&c, d)
	return c
}

// full reports whether nearly all of a limit was in use.
func full(k *timeline.OomKills) bool {
	return k != nil && k.Before.Limit > 0 && max(k.Before.Usage, k.After.Usage) > k.Before.Limit/20*19
}

// killed is SIGKILL without a row that tells who sent it: the counters say
// whether the out-of-memory killer was at work.
func (o *outcome) killed(d *death) cause {
	part := d.Worker.Loader.Process.Part
	c := cause{kind: unknownSender, short: status(d.Death)}
	from, to := d.span()
	for _, k := range o.OomKills(part, from, to) {
		host, where := k.Before.Scope == "host", "control group "+k.Before.Path
		if host {
			where = "this machine"
		}
		counter, refs := "The out-of-memory counter of "+where, []finding.Ref{ref(part, "limit", k.Before.Seq), ref(part, "limit", k.After.Seq)}
		if k.Kills <= 0 {
			if k.Kills == 0 && !host && k.Before.TsNS <= from && k.After.TsNS >= d.When() {
				c.say("%s stayed at %d: its limit of %s is not what killed it.", counter, k.After.OomKills, words.Bytes(k.Before.Limit))
				c.refer(refs...)
			}
			continue
		}
		kills := o.ends.Killed(k.Before.TsNS, k.After.TsNS)
		counter += fmt.Sprintf(" rose from %d to %d in this time, in which", k.Before.OomKills, k.After.OomKills)
		if !host && int(k.Kills) == kills && k.After.TsNS >= d.When() {
			c = cause{kind: cgroupOom, short: fmt.Sprintf("SIGKILL by the out-of-memory killer, %s may use %s", where, words.Bytes(k.Before.Limit))}
			c.say("%s exactly %s of the run got SIGKILL; its limit is %s.", counter, words.Count(kills, "process"), words.Bytes(k.Before.Limit))
		} else {
			c.kind, c.short = oomNear, "SIGKILL while the out-of-memory killer was at work on "+where
			c.say("%s %s of the run got SIGKILL.", counter, words.Count(kills, "process"))
		}
		c.where, c.limit = where, k.Before.Limit
		c.refer(refs...)
		o.users(&c, d)
		return c
	}
	c.say("Who sent SIGKILL is visible in the kernel tier only.")
	return c
}

// users says who had the memory.
func (o *outcome) users(c *cause, d *death) {
	main := d.Worker.Loader.Process
	if main.Memory.Rss == 0 {
		return
	}
	text := fmt.Sprintf("Last seen resident: %s in the main process", words.Bytes(main.Memory.Rss))
	var least, most int64
	n := 0
	for _, w := range d.Worker.Loader.WorkerProcesses {
		p := w.Process
		if p == nil || p.Memory.Rss == 0 || !o.overlap(w, d) {
			continue
		}
		if n++; n == 1 {
			least = p.Memory.Rss
		}
		least, most = min(least, p.Memory.Rss), max(most, p.Memory.Rss)
	}
	if n > 0 {
		text += fmt.Sprintf(", %s to %s in each of %s (pages that they share are in each)",
			words.Bytes(least), words.Bytes(most), words.Count(n, "worker"))
	}
	c.say("%s.", text)
	c.refer(ref(main.Part, "memory", main.Memory.Seq))
}

// memoryWasShort reports whether the out-of-memory killer ran when a worker got SIGKILL.
func (o *outcome) memoryWasShort(d *death) bool {
	if d.Signal != timeline.SIGKILL {
		return false
	}
	from, to := d.span()
	for _, k := range o.OomKills(d.Worker.Loader.Process.Part, from, to) {
		if k.Kills > 0 {
			return true
		}
	}
	return false
}

// span is when it died: not before from, not after to.
func (d *death) span() (from, to int64) {
	to = d.When()
	if d.Exact {
		return to, to
	}
	return to - 2*together, to
}
