package testsupport

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestTheMoreThereIsToRunTheMoreTimeIsGiven(t *testing.T) {
	if runnable() < 1 {
		t.Errorf("%v threads run, and this one does", runnable())
	}
	var stop atomic.Bool
	defer stop.Store(true)
	loops := 3 * 2 * runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(loops + 1)) // as many threads
	for range loops {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	for end := time.Now().Add(10 * time.Second); Paced(time.Second) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a second is %v with %d threads that want to run", Paced(time.Second), loops)
		}
	}
	if most := Paced(time.Second); most > 5*time.Second {
		t.Errorf("a second is %v", most)
	}
}
