package source

import (
	"fmt"
	"testing"
)

func BenchmarkReadList(b *testing.B) {
	g := newRig(b)
	for lo := 0; lo < benchRows; lo += 1000 {
		args := []any{"orders"}
		for i := lo; i < lo+1000; i++ {
			args = append(args, fmt.Sprintf(`{"id":%d,"name":"Somebody With A Name","email":"somebody@example.org",`+
				`"city":"Shenzhen","score":%d,"updated_at":"2026-01-01T12:34:56Z"}`, i, i*7))
		}
		g.Do("RPUSH", args...)
	}
	benchRead(b, g, g.list(ListOptions{Inputs: []string{"id", "name", "email", "city", "score", "updated_at"}}))
}

func BenchmarkReadStream(b *testing.B) {
	g := newRig(b)
	for lo := 0; lo < benchRows; lo += 1000 {
		for i := lo; i < lo+1000; i++ {
			err := g.Conn.Send("XADD", "events", "*", "id", i, "name", "Somebody With A Name", "email", "somebody@example.org",
				"city", "Shenzhen", "score", i*7, "updated_at", "2026-01-01T12:34:56Z")
			if err != nil {
				b.Fatal(err)
			}
		}
		g.Do("")
	}
	benchRead(b, g, g.stream(StreamOptions{Inputs: []string{"id", "name", "email", "city", "score", "updated_at"}}))
}
