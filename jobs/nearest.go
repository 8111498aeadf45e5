package jobs

import "strings"

// nearest is the candidate that was probably meant, or "": the one of least
// edit distance, the first among equals, if it is near enough.
func nearest(name string, candidates []string) string {
	best, least := "", 1+max(1, len(name)/3)
	for _, candidate := range candidates {
		if d := editDistance(strings.ToLower(name), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// nearestKey is the key that was probably meant by an unknown one: the same
// name in another table, a name that other trainers use for it, a slip within
// its own table, or a slip anywhere.
func nearestKey(name string) string {
	table, leaf := splitKey(name)
	var local, all []string
	for _, k := range keyTable {
		keyTableName, keyLeaf := splitKey(k.Name)
		if keyLeaf == leaf {
			return k.Name
		}
		for _, other := range k.aliases {
			if other == leaf {
				return k.Name
			}
		}
		if keyTableName == table {
			local = append(local, keyLeaf)
		}
		all = append(all, k.Name)
	}
	if found := nearest(leaf, local); found != "" {
		return strings.TrimPrefix(table+"."+found, ".")
	}
	if found := nearest(name, all); found != "" {
		return found
	}
	return nearestLeaf(leaf)
}

// nearestLeaf looks for a slip in a name whose table is wrong as well.
func nearestLeaf(leaf string) string {
	leaves := make([]string, len(keyTable))
	for i, k := range keyTable {
		_, leaves[i] = splitKey(k.Name)
	}
	found := nearest(leaf, leaves)
	for i, candidate := range leaves {
		if found != "" && candidate == found {
			return keyTable[i].Name
		}
	}
	return ""
}

// didYouMean is a hint, or "" when nothing is near.
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return "did you mean " + name + "?"
}

// splitKey cuts "table.key" at the last point; a top key has table "".
func splitKey(name string) (table, leaf string) {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		return name[:at], name[at+1:]
	}
	return "", name
}

// longestName bounds the work on hostile names.
const longestName = 64

// editDistance counts insertions, deletions, substitutions and swaps of
// neighbours (optimal string alignment, Boytsov 2011).
func editDistance(a, b string) int {
	if len(a) > longestName || len(b) > longestName {
		return len(a) + len(b)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(last[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
