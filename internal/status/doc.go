// Package status serves operators and monitoring: pages, an API with the same content,
// health endpoints and metrics. Operators also give their orders here. The package has the
// listeners and combines the parts; each part is a package below it.
//
// These packages do not know Redis or a database: the daemon fills a [diagnose.Snapshot]
// through a [state.Source], and an [operate.Node] answers all further questions. They carry
// out no orders either: an [operate.Order] is data. Package auth checks the caller's right
// to give it, then an [operate.Do] carries it out. Operators look at a node most when
// something is broken. Two rules follow:
//
//   - It answers within two seconds, even if a server hangs. One goroutine waits for a
//     slow Source, not one for each request. Meanwhile the page shows the last known
//     state, its age and the reason.
//   - It never harms the leader. Requests and connections are limited. States are read
//     at most twice a second, with any number of open pages. A panic in a Source is an
//     error on the page.
//
// Health endpoints and metrics read memory only ([Health], package metrics) and never
// wait for a Source.
package status
