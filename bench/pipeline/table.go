package main

func (b *bench) tables() {}
func (b *bench) chart() string { return "" }
