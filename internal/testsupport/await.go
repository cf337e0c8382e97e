package testsupport

import (
	"fmt"
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
