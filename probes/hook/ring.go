package hook

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/shim"
)

const (
	minCapacity = 4 << 10
	maxCapacity = RingBytes // the hook is not told to make larger ones
)

// The header of a ring (shim/PROTOCOL.md), and where its fields are.
var (
	headerSize = layouts.HeaderBytes

	atVersion  = at(layouts.Header, "version", 'I')
	atHead     = at(layouts.Header, "head", 'Q')
	atTail     = at(layouts.Header, "tail", 'Q')
	atCapacity = at(layouts.Header, "capacity", 'I')
	atPid      = at(layouts.Header, "pid", 'I')
	atPpid     = at(layouts.Header, "ppid", 'I')
	atFlags    = at(layouts.Header, "flags", 'I')
	atStart    = at(layouts.Header, "start", 'Q')
	atDropped  = at(layouts.Header, "dropped", 'Q')
	atBeat     = at(layouts.Header, "beat", 'Q')
	atHookNS   = at(layouts.Header, "hook_ns", 'Q')
	atCalls    = at(layouts.Header, "calls", 'Q')
	atRecords  = at(layouts.Header, "records", 'Q')
	atBell     = at(layouts.Header, "bell", 'Q')

	flagEnded  = layouts.Flags["ended"]
	flagUnread = layouts.Flags["unread"]
	flagErrors = layouts.Flags["errors"]
)

var magic = [4]byte{'D', 'P', 'R', '1'}

type header struct {
	head, tail     uint64
	capacity       uint32
	pid, ppid      int32
	flags          uint32
	startNS        int64
	dropped        uint64
	hookNS         uint64
	calls, records uint64
	bell           uint64 // bytes after each of which it rings; 0: it does not
}

var (
	errNotYet  = errors.New("no ring yet")     // the hook is about to write the header
	errDamaged = errors.New("damaged ring")    // what it says cannot be
	errForeign = errors.New("unknown version") // of a hook that is not ours
)

// ring is one open ring file.
//
// It is read by pread and not through a mapping: the file belongs to the
// watched process, which can truncate it at any moment, and a load from a page
// that is gone is a SIGBUS that no Go program survives. The page cache makes a
// mapping's stores visible to pread at once on every local file system, and a
// copy cannot change while it is checked.
type ring struct {
	fd       int
	name     string
	capacity uint64
	tail     uint64
	header
	raw  []byte // bytes of the header
	next uint32 // number of the next record
	gaps uint64 // records whose numbers were skipped
}

// openRing opens a ring by its folder's descriptor and its name.
func openRing(dir int, name string) (*ring, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open ring %s: %w", name, err)
	}
	r := &ring{fd: fd, name: name}
	if err := r.check(); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("open ring %s: %w", name, err)
	}
	return r, nil
}

func (r *ring) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(r.fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%w: not a regular file", errDamaged)
	}
	if st.Size < int64(headerSize) {
		return errNotYet
	}
	if err := r.readHeader(); err != nil {
		return err
	}
	if r.header.capacity == 0 {
		return errNotYet // magic and capacity are two stores, which other processors may see in either order
	}
	if c := r.header.capacity; c < minCapacity || c > maxCapacity || c%8 != 0 || st.Size < int64(headerSize)+int64(c) {
		return fmt.Errorf("%w: capacity %d in a file of %d bytes", errDamaged, c, st.Size)
	}
	r.capacity = uint64(r.header.capacity)
	r.tail = r.header.tail
	return nil
}

func (r *ring) readHeader() error {
	if r.raw == nil {
		r.raw = make([]byte, headerSize)
	}
	b := r.raw
	if err := readAt(r.fd, b, 0); err != nil {
		return err
	}
	if b[0] == 0 {
		return errNotYet
	}
	if [4]byte(b[:4]) != magic {
		return fmt.Errorf("%w: it begins with %q", errDamaged, b[:4])
	}
	if v := u32(b, atVersion); v != shim.Version {
		return fmt.Errorf("%w: %d", errForeign, v)
	}
	r.header = header{
		head: u64(b, atHead), tail: u64(b, atTail), capacity: u32(b, atCapacity), pid: int32(u32(b, atPid)), ppid: int32(u32(b, atPpid)),
		flags: u32(b, atFlags), startNS: int64(u64(b, atStart)), dropped: u64(b, atDropped),
		hookNS: u64(b, atHookNS), calls: u64(b, atCalls), records: u64(b, atRecords), bell: u64(b, atBell),
	}
	return nil
}

// drain gives the new records to take, and returns how many bytes they were.
// buf is memory to use; it is returned because it may have grown. An error
// means that what lies at the tail is not, or not yet, a record: the tail stays
// in front of it.
func (r *ring) drain(buf []byte, take func(record)) (n int, _ []byte, err error) {
	if err := r.readHeader(); err != nil {
		return 0, buf, fmt.Errorf("ring %s: %w", r.name, err)
	}
	fill := r.head - r.tail
	if r.head < r.tail || fill > r.capacity || r.head%8 != 0 {
		return 0, buf, fmt.Errorf("ring %s: %w: head %d, tail %d, capacity %d", r.name, errDamaged, r.head, r.tail, r.capacity)
	}
	if fill == 0 {
		return 0, buf, nil
	}
	if uint64(cap(buf)) < fill {
		buf = make([]byte, r.capacity)
	}
	data := buf[:fill]
	at := r.tail % r.capacity
	first := min(fill, r.capacity-at)
	if err = readAt(r.fd, data[:first], int64(headerSize)+int64(at)); err == nil {
		err = readAt(r.fd, data[first:], int64(headerSize))
	}
	if err != nil {
		return 0, buf, fmt.Errorf("ring %s: %w", r.name, err)
	}
	before := r.tail
	for len(data) > 0 {
		rec, rest, e := nextRecord(data)
		if e != nil {
			err = fmt.Errorf("ring %s, byte %d: %w", r.name, r.tail, e)
			break
		}
		if rec.kind != typePad {
			// A number from the past is a record of the lap before: the head
			// became visible first. Numbers of the future: some are missing.
			if ahead := rec.number - r.next; ahead >= 1<<31 {
				err = fmt.Errorf("ring %s, byte %d: %w: number %d, expected %d", r.name, r.tail, errRecord, rec.number, r.next)
				break
			} else {
				r.gaps += uint64(ahead)
			}
			r.next = rec.number + 1
			take(rec)
		}
		r.tail += uint64(len(data) - len(rest))
		data = rest
	}
	if r.tail != before {
		r.write(atTail, r.tail)
	}
	return int(r.tail - before), buf, err
}

// beat tells the hook that somebody is still reading.
func (r *ring) beat(now int64) { r.write(atBeat, uint64(now)) }

// write fails only if the file is damaged, which the next read finds.
func (r *ring) write(at int, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	_, _ = unix.Pwrite(r.fd, b[:], int64(at))
}

// lost is how many records found no room or went missing, ever. A hook that
// numbers what it drops shows the same loss in both counts.
func (r *ring) lost() uint64 { return max(r.dropped, r.gaps) }

func (r *ring) close() { _ = unix.Close(r.fd) }

func readAt(fd int, b []byte, offset int64) error {
	for len(b) > 0 {
		n, err := unix.Pread(fd, b, offset)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return fmt.Errorf("read: %w", err)
		case n == 0:
			return fmt.Errorf("%w: it ends at byte %d", errDamaged, offset)
		}
		b, offset = b[n:], offset+int64(n)
	}
	return nil
}
