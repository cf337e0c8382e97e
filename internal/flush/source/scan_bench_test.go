package source

import (
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

// BenchmarkReadScan reads the same rows as BenchmarkReadHashes, but finds them by scanning.
func BenchmarkReadScan(b *testing.B) {
	g := newRig(b)
	for lo := 0; lo < benchRows; lo += 1000 {
		for i := lo; i < lo+1000; i++ {
			err := g.Conn.Send("HSET", fmt.Sprintf("user:u%d", i), "name", "Somebody With A Name", "email", "somebody@example.org",
				"city", "Shenzhen", "score", i, "updated_at", 1795254021+i)
			if err != nil {
				b.Fatal(err)
			}
		}
		g.Do("")
	}
	for _, lanes := range []int{1, 2} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			src := scanOn(b, g.store, ScanOptions{Key: "user:<id>", Inputs: strings.Fields("id name email city score updated_at"),
				Lanes: lanes})
			benchRead(b, g, src)
		})
	}
	// Hardly any key matches, and the scan must look at all keys.
	b.Run("rare", func(b *testing.B) {
		g.Do("SET", "one:1", "x")
		benchRead(b, g, scanOn(b, g.store, ScanOptions{Key: "one:<id>", Value: "string", Inputs: []string{row.InputValue}}))
	})
}
