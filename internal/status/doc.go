// Package status is what operators and monitoring see of a node, and where they give
// orders: pages, the same as an API, health endpoints and metrics.
//
// The package knows no other: it declares its own view of the world ([Snapshot], and
// beyond it what a [operate.Node] tells), and the daemon fills it through a [Source]. It carries
// out nothing itself: an [Order] is data, handed to a [Do] once it is known who may give
// it (auth.go). Two rules follow from the fact that it is looked at most when something
// is broken:
//
//   - It answers, within two seconds, whatever hangs. A Source that does not come
//     back is waited for by one goroutine, not by one a request; meanwhile the page
//     shows the last known state, says how old it is and why.
//   - It never harms the leader. Requests and connections are limited, states are
//     read at most twice a second however many people look, and a panic in a
//     Source is an error on the page.
//
// Health endpoints and metrics come from memory alone ([Health], [Metrics]) and
// never wait for a Source.
package status
