package site

import (
	"errors"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/flush"
)

// A driver that parses a DSN in another way than intended may show a piece of the password.
func TestAnErrorOfADatabaseHasNoPieceOfItsPassword(t *testing.T) {
	for driver, dsn := range map[string]string{
		"postgres": "postgres://app:first%40refused%40connect@127.0.0.1:1/db?sslmode=disable",
		"mysql":    "app:first@refused:connect@tcp(127.0.0.1:1)/db",
	} {
		store, err := OpenDatabase(config.Config{Databases: map[string]config.Database{"main": {Driver: driver, DSNInline: dsn}}}, "main")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		err = store.Ping(t.Context())
		if !errors.Is(err, flush.ErrTransient) || !strings.Contains(err.Error(), "***") ||
			strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "connect:") {
			t.Errorf("%s: %v, want *** in place of the pieces", driver, err)
		}
		found, _ := store.Preflight(t.Context(), false)
		if len(found) == 0 || strings.Contains(found[0].What, "refused") {
			t.Errorf("%s: %+v", driver, found)
		}
	}
}
