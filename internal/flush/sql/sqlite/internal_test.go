package sqlite

import (
	"testing"

	"baton/internal/flush/row"
)

func TestNumericTextsThatSQLiteWouldChange(t *testing.T) {
	for text, want := range map[string]bool{
		"1": false, "-9223372036854775808": false, "9223372036854775808": true, "123456789012345": false, "0.00000012345": false,
		"1234567890.12345678": true, "1e3": false, "1e400": true, "1e-400": true, "0.000": false, "10000000000000000000": false,
		"NaN": false, "Infinity": false, "abc": false,
		"1.5000000000000000000": false,
	} {
		if got := losesDigits(text, row.KindNumeric); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for text, want := range map[string]bool{"007": true, "7": false, "1.0": true, "0x1F": false, "0x1p4": false, "abc": false,
		"2024-01-01": false, "+1": true} {
		if got := losesDigits(text, row.KindOther); got != want {
			t.Errorf("other text %q: %v", text, got)
		}
	}
}
