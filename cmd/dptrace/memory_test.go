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
		runtime.GC()
		select {
		case live := <-seen:
			if live < int64(len(held)) {
				t.Errorf("%d bytes in use", live)
			}
		case <-time.After(time.Minute):
			t.Fatal("a collection was not told")
		}
	}
	runtime.KeepAlive(held)
}
