package site

import (
	"testing"

	"baton/internal/config"
)

func TestADatabaseHasAConnectionForEveryLane(t *testing.T) {
	c := config.Config{Jobs: []config.Job{
		{Flush: config.Flush{To: config.To{Database: "main"}, Lanes: 8}},
		{Flush: config.Flush{To: config.To{Database: "main"}}},
		{Flush: config.Flush{To: config.To{Database: "other"}, Lanes: 16}},
	}}
	for name, want := range map[string]int{"main": 9, "other": 16, "idle": 4} {
		if got := Connections(c, name); got != want {
			t.Errorf("%s has %d connections, want %d", name, got, want)
		}
	}
}
