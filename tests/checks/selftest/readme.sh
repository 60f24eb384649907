# SPDX-License-Identifier: Apache-2.0
cat <<'MD' | plant README.md

```sh
int plant(void) { return plant_of_shell; }
```

```c
int plant(void);
int plant(void) { return plant_of_c; }
```

    sh plant.sh --first
    sh plant.sh --twice
    sh plant.sh --twice

<!-- from examples/plant.c -->

```c
int quoted(void)
{
        return 1;
/* ... */
int last(void)
```
MD
cat <<'C' | plant examples/plant.c
/* SPDX-License-Identifier: Apache-2.0 */
int quoted(void)
{
	return 1;
}

int between(void);

int last(void)
{
	return quoted();
}
C
red readme plant_of_c 'examples/plant.c: is quoted, but not built' ': the same line again'
quiet plant_of_shell 'this line does not follow' quoted:

fresh
echo 'spoke_example(plant plant.c)' | plant examples/CMakeLists.txt
cat <<'C' | plant examples/plant.c
int one(void);
int two(void);
int three(void);
C
cat <<'MD' | plant PLANT.md
<!-- from examples/plant.c -->
```c
int one(void);
int three(void);
```
<!-- from examples/plant.c -->
```c
int two(void);
/* ... */
int one(void);
```
<!-- from examples/plant.c -->
```c
int one(void)
```
<!-- from examples/plant.c -->
```c
/* ... */
```
<!-- from examples/none.c -->
```c
int one(void);
```
<!-- from examples/plant.c -->
Words.
<!-- from examples/plant.c -->
```c
int one(void);
/* ... */
int three(void);
```
MD
red readme 'PLANT.md:4: this line does not follow there in examples/plant.c' \
	'PLANT.md:10: this line' 'PLANT.md:14: this line' 'PLANT.md:19: empty quotation' \
	'PLANT.md:20: no such file to quote: examples/none.c' 'PLANT.md:24: no block follows'
quiet 'PLANT.md:26:' 'PLANT.md:28:' 'PLANT.md:30:' README.md 'is quoted, but'

fresh
sed '/^```c$/,/^```$/d' timer/WHEEL.md >"$copy/timer/WHEEL.md"
red readme 'no C was found in timer/WHEEL.md'
