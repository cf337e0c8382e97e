// Package status serves operators and monitoring. It serves pages, an API with the same content, health endpoints and metrics. Operators
// also give their orders here. The package contains the listeners and combines the parts. Each part is a package below this one.
//
// These packages do not know Redis or a database. The daemon fills a [diagnose.Snapshot] through a [state.Source], and an [operate.Node]
// answers all further questions. The packages also do not carry out orders, because an [operate.Order] is only data. Package auth checks
// whether the caller may give the order, and an [operate.Do] carries it out. Operators look at a node mostly when something is broken, so
// there are two rules:
//
//   - The node answers within two seconds, even if a server hangs. Only one goroutine waits for a slow Source, instead of one for each
//     request. While it waits, the page shows the last known state, its age and the reason.
//   - The node never harms the leader. Requests and connections are limited. Without orders the state is read at most twice per second,
//     regardless of the number of open pages. A panic in a Source becomes an error on the page.
//
// Health endpoints and metrics read only memory ([Health], package metrics) and never wait for a Source.
package status
