package testsupport

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"baton/internal/testsupport/ranout"
)

// pollMost is the longest pause of await: what takes long is asked for less often.
const pollMost = 50 * time.Millisecond

// await asks until ok is nil. The error says what was waited for, and why not.
func await(within time.Duration, what string, ok func() error) error {
	deadline := time.Now().Add(within)
	for pause := pollReady; ; pause = min(pause+pollReady, pollMost) {
		err := ok()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s it is still not so that %s: %w", within, what, err)
		}
		time.Sleep(pause)
	}
}

// Await waits for ok, and fails the test after a minute: a declared wait that ran out, for which
// test/suite tries the test again (package ranout). shown is logged with the failure, as it is by then.
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

// AwaitNoError is Await for what can say why it is not so yet.
func AwaitNoError(t testing.TB, what string, ok func() error) {
	t.Helper()
	if err := await(time.Minute, what, ok); err != nil {
		ranout.Fatal(t, what, err.Error())
	}
}

// Receive is Await for what comes by a channel. A closed channel gives the zero value.
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
