// Command pipeline compares baton with the naive program and with a stream
// processor's pipeline, on the same way from Redis into PostgreSQL: same machine,
// same run, the same entries, a private Redis and PostgreSQL.
//
// # The contenders
//
//   - baton: the real `baton run`, with lease, fence and ledger or position, default sizes
//   - Benthos: the stream processor, built from its Go modules (../peers), with a
//     configuration of its own redis_streams, redis_list and redis_scan inputs and its
//     sql_insert and sql_raw outputs. Several sizes of a batch and numbers of writers
//     are tried first, and those with the most rows a second count
//   - tuned by hand: a Go program for this stream and this table alone, which reads ahead, sorts each
//     batch, and has its place in the stream in the batch's transaction (tuned.go): for speed only
//   - naive: the first solution of most programmers (naive.go)
//
// # The measurements
//
//   - speed: the program runs and has warmed up; it is stopped (SIGSTOP) while a
//     backlog is laid out in Redis and goes on (SIGCONT); the clock runs until the last
//     row is in the table. A scan is started for every pass, which is how Benthos has
//     it: its input ends with the last key. CPU and memory are those of the process
//   - kills: entries come in at a steady rate; the process is killed (SIGKILL) at a
//     random moment while it writes, and started again, thirty times; then the producer
//     stops, and once the table has come to rest it is compared with the produced
//     entries. The table has no unique index, so that duplicates show
package main
