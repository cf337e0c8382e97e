package text

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Seconds is a duration that is encoded in JSON as a number of seconds with milliseconds, such as 1.25.
type Seconds time.Duration

// Millisecond is one millisecond.
const Millisecond = Seconds(time.Millisecond)

// Duration returns s as a [time.Duration].
func (s Seconds) Duration() time.Duration { return time.Duration(s) }

// Milliseconds returns s as a whole number of milliseconds.
func (s Seconds) Milliseconds() int64 { return s.Duration().Milliseconds() }

// MarshalJSON implements [json.Marshaler].
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, s.Duration().Round(time.Millisecond).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var n float64
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	switch n *= float64(time.Second); {
	case n >= math.MaxInt64:
		*s = math.MaxInt64
	case n <= math.MinInt64:
		*s = math.MinInt64
	default:
		*s = Seconds(time.Duration(n).Round(time.Millisecond))
	}
	return nil
}
