# SPDX-License-Identifier: Apache-2.0
cat <<'MD' | plant README.md

```sh
int plant(void) { return plant_of_shell; }
```

```c
int plant(void);
int plant(void) { return plant_of_c; }
```
MD
red readme plant_of_c
quiet plant_of_shell
sed '/^```c$/,/^```$/d' README.md >"$copy/README.md"
red readme 'README.md: no C was found'
