package text

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestSecondsAreANumberInJSON(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1250 * time.Millisecond: "1.25", time.Hour: "3600", -1001 * time.Millisecond: "-1.001", 1_499_999: "0.001",
		8_120_000_000: "8.12", 100 * 365 * 24 * time.Hour: "3153600000",
	} {
		got, err := json.Marshal(Seconds(d))
		if err != nil || string(got) != want {
			t.Errorf("%v: %s, %v; want %s", d, got, err, want)
		}
		var back Seconds
		if err := json.Unmarshal(got, &back); err != nil || back.Duration() != d.Round(time.Millisecond) {
			t.Errorf("%s is read as %v, %v", got, back.Duration(), err)
		}
	}
	for text, want := range map[string]Seconds{"1e300": math.MaxInt64, "-1e300": math.MinInt64} {
		var s Seconds
		if err := json.Unmarshal([]byte(text), &s); err != nil || s != want {
			t.Errorf("%s is read as %d, %v", text, s, err)
		}
	}
	var s Seconds
	if err := json.Unmarshal([]byte(`"1s"`), &s); err == nil {
		t.Error("a text is no number of seconds")
	}
	type object struct {
		S Seconds `json:"s,omitzero"`
	}
	if got, err := json.Marshal(object{}); err != nil || string(got) != "{}" {
		t.Errorf("%s, %v", got, err)
	}
}
