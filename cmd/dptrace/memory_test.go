package main

import (
	"runtime"
	"testing"
	"time"
)

// TestAfterCollection: each collection is told, with what is in use then.
func TestAfterCollection(t *testing.T) {
	seen := make(chan int64, 100)
	afterCollection(func(live int64) {
		select {
		case seen <- live:
		default:
		}
	})
	<-seen // of before
	held := make([]byte, 64<<20)
	for range 3 {
		if live := afterNext(t, seen); live < int64(len(held)) {
			t.Errorf("%d bytes in use", live)
		}
	}
	runtime.KeepAlive(held)
}

// afterNext collects until that is told: what is waited for may have been made while one was under way, which leaves it.
func afterNext(t *testing.T, seen <-chan int64) int64 {
	t.Helper()
	for range 600 {
		runtime.GC()
		select {
		case live := <-seen:
			return live
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("no collection was told")
	return 0
}
