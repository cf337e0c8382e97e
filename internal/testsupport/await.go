package testsupport

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"baton/internal/testsupport/ranout"
)

// pollMost limits the pause between two calls of ok in await. The pauses grow with the time that await has waited.
const pollMost = 50 * time.Millisecond

// await calls the function ok until that function returns nil. The error of await names the event and contains the last error of that
// function.
func await(within time.Duration, what string, ok func() error) error {
	deadline := time.Now().Add(within)
	for pause := pollReady; ; pause = min(pause+pollReady, pollMost) {
		err := ok()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s this is still not true: %s: %w", within, what, err)
		}
		time.Sleep(pause)
	}
}

// Await waits until the function ok returns true, and fails the test after a minute. If a test fails at this time limit, test/suite runs
// the test again (see package ranout). If Await fails, it also logs the values in shown.
func Await(t testing.TB, what string, ok func() bool, shown ...fmt.Stringer) {
	t.Helper()
	notYet := errors.New("not yet")
	if await(time.Minute, what, func() error {
		if ok() {
			return nil
		}
		return notYet
	}) == nil {
		return
	}
	for _, s := range shown {
		t.Log(s)
	}
	ranout.Fatal(t, what, "waited a minute in vain for "+what)
}

// AwaitNoError waits like Await until ok returns nil. The error of ok says why the condition does not hold yet.
func AwaitNoError(t testing.TB, what string, ok func() error) {
	t.Helper()
	if err := await(time.Minute, what, ok); err != nil {
		ranout.Fatal(t, what, err.Error())
	}
}

// Receive waits like Await for a value from a channel, and returns the value. If the channel is closed, Receive returns the zero value.
func Receive[T any](t testing.TB, what string, from <-chan T, shown ...fmt.Stringer) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
	}
	for _, s := range shown {
		t.Log(s)
	}
	ranout.Fatal(t, what, "waited a minute in vain for "+what)
	panic("unreachable") // Fatal ends the goroutine
}
