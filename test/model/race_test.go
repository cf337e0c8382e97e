//go:build race

package model

// underRace makes the bounds smaller. The race detector makes a search eight times slower, and finds nothing in one goroutine.
const underRace = true
