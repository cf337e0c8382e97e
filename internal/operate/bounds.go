package operate

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// Any client may have written the texts in Redis: a text of megabytes, or a time beyond the year 9999 that cannot be encoded, would
// exhaust page, API and memory. So Bounded cuts everything that a node has read once, before page or API use it.
const (
	// MostName is how long a name may be, MostProse a text for people, in bytes. Both are
	// far more than baton ever writes.
	MostName  = 512
	MostProse = 16 << 10
	// MostListed are nodes, events, and runs of one job that go on.
	MostListed = 1000
)

// prose are the fields that hold a text for people.
var prose = [...]string{
	"Error", "Output", "Reason", "Vacancy", "Waiting", "Aside", "Schedule", "ScheduleWords", "Target", "By", "Do", "What", "Why", "Notes",
	"Definition",
}

// Bounded returns v with all that it holds bounded. Values within the bounds stay untouched and are not copied: others may read it.
func Bounded[T any](v T) T {
	bound(reflect.ValueOf(&v).Elem(), MostName)
	return v
}

func bound(v reflect.Value, most int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			bound(v.Elem(), most)
		}
	case reflect.Slice:
		if v.Len() > MostListed && v.Type() != reflect.TypeFor[[]diagnose.Job]() { // jobs are the configuration's
			v.Set(v.Slice(0, MostListed))
		}
		for i := range v.Len() {
			bound(v.Index(i), most)
		}
	case reflect.Struct:
		if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
			if !at.IsZero() && !Writable(*at) {
				*at = time.Time{}
			}
			return
		}
		for i := range v.NumField() {
			longest := MostName
			if slices.Contains(prose[:], v.Type().Field(i).Name) {
				longest = MostProse
			}
			bound(v.Field(i), longest)
		}
	case reflect.String:
		if v.Len() > most {
			v.SetString(text.Clip(strings.ToValidUTF8(v.String()[:most+1], "\uFFFD"), most))
		}
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			v.SetFloat(0)
		}
	}
}

// Writable reports whether a time can be written down: RFC 3339 ends with the year 9999.
func Writable(at time.Time) bool {
	const first, last = 1970, 9000
	return at.UTC().Year() >= first && at.UTC().Year() <= last
}
