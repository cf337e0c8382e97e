package row

import (
	"cmp"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestAddingIsExactOrRefused(t *testing.T) {
	numeric := func(s string) Value { return String(KindNumeric, s) }
	for _, c := range []struct {
		a, b Value
		want string
	}{
		{Integer(math.MaxInt64), Integer(0), "integer " + strconv.Itoa(math.MaxInt64)},
		{Integer(math.MaxInt64), Integer(1), "refused"},
		{Integer(math.MinInt64), Integer(-1), "refused"},
		{Integer(math.MinInt64), Integer(math.MaxInt64), "integer -1"},
		{Float(0.5), Float(0.25), "float 0.75"},
		{Float(math.MaxFloat64), Float(math.MaxFloat64), "refused"},
		{numeric("0.1"), numeric("0.2"), "numeric 0.3"},
		{numeric("99999999999999999999999999"), numeric("1"), "numeric 100000000000000000000000000"},
		{numeric("-1.50"), numeric("1.5"), "numeric 0"},
		{Integer(1), Float(1), "refused"},
	} {
		got := "refused"
		if v, err := Add(c.a, c.b); err == nil {
			got = show(v)
		}
		if got != c.want {
			t.Errorf("%s + %s is %s, want %s", show(c.a), show(c.b), got, c.want)
		}
	}
}

// TestPrefixAgreesWithTheFullComparison checks that a sort by prefix agrees with a sort by key.
func TestPrefixAgreesWithTheFullComparison(t *testing.T) {
	kinds := map[Kind]*rapid.Generator[Value]{
		KindInteger: rapid.Custom(func(t *rapid.T) Value {
			if rapid.Bool().Draw(t, "large") {
				return String(KindNumeric, strconv.FormatUint(rapid.Uint64Min(1<<63).Draw(t, "n"), 10))
			}
			return Integer(rapid.Int64().Draw(t, "n"))
		}),
		KindText:  rapid.Custom(func(t *rapid.T) Value { return String(KindText, rapid.String().Draw(t, "s")) }),
		KindBytes: rapid.Custom(func(t *rapid.T) Value { return String(KindBytes, string(rapid.SliceOf(rapid.Byte()).Draw(t, "s"))) }),
		KindFloat: rapid.Custom(func(t *rapid.T) Value { return Float(rapid.Float64().Draw(t, "f")) }),
		KindDate:  rapid.Custom(func(t *rapid.T) Value { return Value{kind: KindDate, num: uint64(rapid.Int64().Draw(t, "d"))} }),
	}
	for kind, values := range kinds {
		t.Run(kind.String(), rapid.MakeCheck(func(t *rapid.T) {
			a, b := values.Draw(t, "a"), values.Draw(t, "b")
			if p := cmp.Compare(a.Prefix(kind), b.Prefix(kind)); p != 0 && p != Compare(a, b) {
				t.Fatalf("%s and %s: prefixes say %d, values %d", show(a), show(b), p, Compare(a, b))
			}
		}))
	}
}
