package deadcmd

import (
	"io"
	"testing"
	"time"

	"baton/cmd/baton/internal/show/showtest"
	"baton/internal/operate"
)

// TestTimesOfLettersSayTheirZone checks that each printed time contains its zone.
func TestTimesOfLettersSayTheirZone(t *testing.T) {
	at := time.Date(2027, 3, 28, 1, 2, 3, 0, time.UTC)
	letter := operate.Letter{ID: "3f2a9c41d07b", Job: "users", At: at}
	showtest.Times(t, "dead list", at, func(w io.Writer) error { return printLetters(w, []operate.Letter{letter}, 10, true) })
	showtest.Times(t, "dead list --count", at, func(w io.Writer) error {
		return printReasons(w, []operate.LetterReason{{Oldest: at, Newest: at}})
	})
	showtest.Times(t, "dead show", at, func(w io.Writer) error { return printLetter(w, letter, true) })
}
