package hook

import "time"

const (
	// The pause between two looks at the rings: so short that the one that fills
	// fastest is not fuller than an eighth at the next look if it goes on like that.
	minPause = 5 * time.Millisecond
	// A ring may begin to fill at any moment. One that rings when a quarter of it
	// is full can be left alone so long; rows must be on the disk within a second.
	maxPause = time.Second / 2
	// One that does not ring is looked at so often.
	bellless = 100 * time.Millisecond

	unmadePause = 20 * time.Millisecond // until a new ring has its header

	share = 1.0 / 8
)

// pause follows the ring that fills fastest, in parts of it per second.
func pause(fastest float64, bells bool) time.Duration {
	longest := maxPause
	if !bells {
		longest = bellless
	}
	if fastest*longest.Seconds() <= share {
		return longest
	}
	return max(time.Duration(share/fastest*float64(time.Second)), minPause)
}
