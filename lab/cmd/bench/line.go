package main

// line is one result, as it is printed.
type line struct {
	Name   string             `json:"name"`
	Params map[string]any     `json:"params"`
	Unit   string             `json:"unit"`
	Ours   float64            `json:"ours"`
	Peers  map[string]float64 `json:"peers"`
	// Ratio says how many times better ours is than the best peer; Ratios says it for each.
	Ratio  float64            `json:"ratio"`
	Ratios map[string]float64 `json:"ratios"`
}
