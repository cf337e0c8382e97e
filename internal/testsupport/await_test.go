package testsupport

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// failure is a testing.TB that records its failure, so that the real test does not fail.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Helper()         {}
func (f *failure) Log(args ...any) { f.text += fmt.Sprintln(args...) }

func (f *failure) Fatal(args ...any) { f.Log(args...); runtime.Goexit() }

func (f *failure) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

func TestAwaitEndsTheTestOfWhatDoesNotCome(t *testing.T) {
	for want, wait := range map[string]func(testing.TB){
		"a dry log":   func(t testing.TB) { Await(t, "rain", func() bool { return false }, bytes.NewBufferString("a dry log")) },
		"rain":        func(t testing.TB) { Await(t, "rain", func() bool { return false }) },
		"no umbrella": func(t testing.TB) { AwaitNoError(t, "it rains", func() error { return errors.New("no umbrella") }) },
		"a postcard":  func(t testing.TB) { Receive(t, "a postcard", make(chan int)) },
		"a wet log":   func(t testing.TB) { Receive(t, "a postcard", make(chan int), bytes.NewBufferString("a wet log")) },
	} {
		synctest.Test(t, func(t *testing.T) {
			f, ended, passed := &failure{TB: t}, make(chan struct{}), false
			go func() {
				defer close(ended)
				wait(f)
				passed = true
			}()
			<-ended
			if passed || !strings.Contains(f.text, want) {
				t.Errorf("passed: %v; said %q, want %q", passed, f.text, want)
			}
		})
	}
	Await(t, "the third time", func() func() bool { n := 0; return func() bool { n++; return n == 3 } }())
	letters := make(chan string, 1)
	letters <- "from Rome"
	if got := Receive(t, "a letter", letters); got != "from Rome" {
		t.Errorf("received %q", got)
	}
}
