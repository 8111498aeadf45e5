package conformance

// cases are all cases that are compared with the reference: ones, primes, and
// sizes on either side of vectors, tiles and blocks.
func cases() []testCase {
	list := flatCases()
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {1, 64, 33}, {17, 13, 11}, {14, 32, 32}, {15, 257, 33}, {64, 48, 144}, {70, 1100, 50}, {233, 71, 97}} {
		list = append(list, linearCases(s[0], s[1], s[2])...)
	}
	for _, s := range [][2]int{{1, 1}, {3, 7}, {33, 48}, {70, 129}, {5, 768}} {
		list = append(list, normCases(s[0], s[1])...)
		list = append(list, dropCases(s[0], s[1])...)
	}
	for _, s := range [][4]int{{1, 1, 1, 1}, {2, 7, 4, 1}, {2, 5, 13, 11}, {3, 70, 129, 65}, {2, 5, 768, 1031}} {
		list = append(list, embedCases(s[0], s[1], s[2], s[3])...)
	}
	for _, s := range [][4]int{{1, 1, 1, 1}, {3, 1, 2, 16}, {2, 5, 3, 8}, {1, 17, 2, 16}, {2, 33, 2, 24}, {1, 64, 1, 32}, {1, 40, 2, 64}, {1, 37, 1, 80}, {1, 20, 1, 128}, {1, 300, 1, 20}} {
		list = append(list, attentionCases(s[0], s[1], s[2], s[3], 1)...)
	}
	list = append(list, attentionCases(1, 19, 2, 8, 30)...) // scores past 1000
	for _, s := range [][2]int{{1, 1}, {4, 3}, {19, 65}, {5, 1031}} {
		list = append(list, lossCases(s[0], s[1])...)
	}
	for _, s := range [][3]int{{1, 1, 1}, {1, 3, 5}, {19, 33, 65}, {40, 48, 1031}} {
		list = append(list, headCases(s[0], s[1], s[2])...)
	}
	return append(list, productCases(300, 520, 770)...) // past every block of a packed product
}

// largeCases are past every block size of the back ends, so that threads share
// them; all together too slow for the reference.
func largeCases() []testCase {
	list := linearCases(517, 600, 523)
	list = append(list, normCases(700, 256)...)
	list = append(list, dropCases(700, 256)...)
	list = append(list, embedCases(3, 300, 256, 500)...)
	list = append(list, attentionCases(3, 130, 4, 48, 1)...)
	list = append(list, lossCases(600, 1031)...)
	return append(list, headCases(300, 128, 300)...)
}
