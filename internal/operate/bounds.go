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

// Any client may have written the texts in Redis. Texts of megabytes would exhaust the memory of the status page and of the API, and a time
// beyond the year 9999 cannot be encoded. So Bounded cuts all values that a node has read, before the page or the API uses them.
const (
	// MostName is the maximum length of a name and MostProse is the maximum length of a text for people, in bytes. Both limits are far
	// above the length of any text that baton writes.
	MostName  = 512
	MostProse = 16 << 10
	// MostListed is the maximum number of nodes, of events, and of runs in progress of one job.
	MostListed = 1000
)

// prose lists the fields that contain a text for people.
var prose = [...]string{
	"Error", "Output", "Reason", "Vacancy", "Waiting", "Aside", "Schedule", "ScheduleWords", "Target", "By", "Do", "What", "Why", "Notes",
	"Definition",
}

// Bounded returns v with long texts and lists cut, and with times and numbers cleared that cannot be encoded. It writes only to the values
// that it must change, because other goroutines may read v.
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
		if v.Len() > MostListed && v.Type() != reflect.TypeFor[[]diagnose.Job]() { // the number of jobs is limited by the configuration
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

// Writable reports whether a time can safely be encoded as RFC 3339, which ends with the year 9999.
func Writable(at time.Time) bool {
	const first, last = 1970, 9000
	return at.UTC().Year() >= first && at.UTC().Year() <= last
}
