package capture

import (
	"testing"

	"baton/internal/redisconn/follow"
)

func TestAPlaceIsReadAsItWasWritten(t *testing.T) {
	at := follow.Position{ReplID: "0123456789012345678901234567890123456789", Offset: 1 << 50, DB: follow.AnyDB}
	for _, p := range []place{
		{at: at, seen: 1<<50 + 7, owed: owesNothing, serial: 1},
		{at: follow.Position{ReplID: "x", DB: 15}, owed: owesPass},
		{at: at, owed: owesDelete, serial: 1<<64 - 1},
	} {
		if got, err := parsePlace(p.String()); err != nil || got != p {
			t.Errorf("%q is %+v, %v; want %+v", p, got, err, p)
		}
	}
	if p, err := parsePlace(""); err != nil || p.owed != owesPass || p.at.ReplID != "" {
		t.Errorf("no place: %+v, %v", p, err)
	}
	for _, bad := range []string{
		"x", "id 1 0 0 - ", "id 1 0 0 ? 1", "id -1 0 0 - 1", "id 1 0 -2 - 1", "id 1 0 0 - 1 more", "1526919030474-55 1234",
	} {
		if p, err := parsePlace(bad); err == nil {
			t.Errorf("%q is %+v", bad, p)
		}
	}
}
