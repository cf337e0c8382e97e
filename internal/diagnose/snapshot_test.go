package diagnose

import "testing"

func TestAnEventSaysOnceWhyItHappened(t *testing.T) {
	for _, c := range []struct {
		event Event
		want  string
	}{
		{Event{Event: "stepped_down"}, ""},
		{Event{Event: "stepped_down", Reason: "stepped down"}, ""},
		{Event{Event: "stepped_down", Reason: "by alice: upgrade"}, "by alice: upgrade"},
		{Event{Event: "stepped_down", Code: "abdicated"}, "abdicated"},
		{Event{Event: "stepped_down", Code: "abdicated", Reason: "abdicated"}, "abdicated"},
		{Event{Event: "stepped_down", Code: "abdicated", Reason: "abdicated: no database"}, "abdicated: no database"},
		{Event{Event: "stepped_down", Code: "abdicated", Reason: "no database"}, "abdicated: no database"},
		{Event{Event: "stepped_down", Code: "balance", Reason: "stepped down"}, "to spread the locks"},
	} {
		if got := c.event.Why(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.event, got, c.want)
		}
	}
}
