package rowscmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"baton/internal/operate"
)

// A node of an older version does not send the time until which it keeps the row.
func TestOnlyTimesThatTheNodeSentAreShown(t *testing.T) {
	sent := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for name, c := range map[string]struct {
		row         operate.DeletedRow
		until, back bool
	}{
		"an older node": {operate.DeletedRow{ID: 7, At: sent}, false, false},
		"kept":          {operate.DeletedRow{ID: 7, At: sent, KeepUntil: sent}, true, false},
		"put back":      {operate.DeletedRow{ID: 7, At: sent, KeepUntil: sent, PutBackAt: sent}, true, true},
	} {
		var out bytes.Buffer
		if err := printRow(&out, c.row); err != nil {
			t.Fatal(err)
		}
		shown := out.String()
		if strings.Contains(shown, "\nuntil     2031-") != c.until || strings.Contains(shown, "\nput back  2031-") != c.back ||
			strings.Contains(shown, "until") != c.until || strings.Contains(shown, "0001") || !strings.Contains(shown, "\nrow ") {
			t.Errorf("%s: %s", name, shown)
		}
	}
}
