package testsupport

import (
	"errors"
	"fmt"
	"testing"
	"time"
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

// Await waits for ok, and fails the test after a minute. shown is logged with the failure, as it is by then.
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
	t.Fatalf("waited a minute in vain for %s", what)
}

// AwaitNoError is Await for what can say why it is not so yet.
func AwaitNoError(t testing.TB, what string, ok func() error) {
	t.Helper()
	if err := await(time.Minute, what, ok); err != nil {
		t.Fatal(err)
	}
}
