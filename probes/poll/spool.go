package poll

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
)

const roomEvery = time.Second

// spool is whether the folder of the hook's records can take another ring. One
// that could not be made leaves no other trace: the hook stands aside.
type spool struct {
	next time.Time // of look
	full time.Time // when it was last seen so; zero: never
}

// look is called often.
func (s *spool) look(r *probe.Recording, now time.Time) {
	if now.Before(s.next) {
		return
	}
	s.next = now.Add(roomEvery)
	if free, ok := freeBytes(r.Spool); ok && free < r.RingBytes {
		s.full = now
	}
}

// fullSince reports whether it had no room at some time after a process was first
// seen, or just before.
func (s *spool) fullSince(seen time.Time) bool {
	return !s.full.IsZero() && s.full.After(seen.Add(-2*roomEvery))
}

// freeBytes is what a file of ours may still take there.
func freeBytes(folder string) (n int64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, false
	}
	if st.Files > 0 && st.Ffree == 0 {
		return 0, true
	}
	return int64(st.Bavail) * st.Bsize, true
}
