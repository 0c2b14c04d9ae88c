"""A cookbook that two people share: a whole small application, typed from end to end.

    .venv/bin/python examples/recipes.py [--home FOLDER]

Ada and Bob each have a store of their own. They keep recipes as typed objects, the ingredients to buy as a list, and a
conversation about each dish. They work apart, sync, and both see the same. `mypy --strict` and pyright check this file
in `tests/docs/test_types.py`.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import antiphon
from antiphon import Delta, List, Object, Party, Results, Store, Thread, prop, typed


@typed
@dataclass
class Recipe:
    """A dish: how long it takes, for how many it is, and what it needs."""

    title: str
    minutes: int
    serves: int = 2
    vegetarian: bool = False
    ingredients: list[str] = field(default_factory=list)


class Cookbook:
    """The recipes of one party, as one of its members uses them."""

    def __init__(self, party: Party) -> None:
        self.party = party
        self.news: list[str] = []
        self._watch = party.subscribe(type=Recipe, callback=self._note)

    @classmethod
    def create(cls, store: Store) -> Cookbook:
        """Found a party with a shopping list."""
        party = store.create_party("Cookbook")
        party.list(name="Shopping")
        return cls(party)

    def _note(self, delta: Delta[Object[Recipe]]) -> None:
        """Write down what is new, as an application would redraw its screen."""
        self.news += [f"new: {item.read().title}" for item in delta.added]
        self.news += [f"changed: {item.read().title}" for item in delta.changed]

    def add(self, recipe: Recipe) -> Object[Recipe]:
        """Add a recipe, with a conversation about it under it."""
        with self.party.batch():
            item = self.party.object(recipe, name=recipe.title)
            self.party.thread(parent=item, name=f"About {recipe.title}")
        return item

    def quick(self, minutes: int) -> Results[Object[Recipe]]:
        """Recipes that take at most so long, the quickest first."""
        return self.party.query(prop("minutes") <= minutes, type=Recipe, order="minutes")

    def vegetarian(self) -> list[Recipe]:
        """All vegetarian recipes, as plain instances."""
        return [item.read() for item in self.party.query(type=Recipe, where=prop("vegetarian").is_(True))]

    def find(self, title: str) -> Object[Recipe]:
        """The recipe with a title."""
        found = self.party.query(prop("title") == title, type=Recipe).first()
        if found is None:
            raise antiphon.UnknownItem(f"there is no recipe called {title!r}; add it first")
        return found

    def scale(self, title: str, serves: int) -> Recipe:
        """Change for how many a recipe is. Only that field is written: edits of others stay."""
        item = self.find(title)
        recipe = item.read()
        recipe.minutes = recipe.minutes * serves // recipe.serves
        recipe.serves = serves
        item.save(recipe)
        return recipe

    def comment(self, title: str, text: str) -> None:
        """Say something about a recipe."""
        self.conversation(title).post(text)

    def conversation(self, title: str) -> Thread:
        """The conversation about a recipe."""
        (thread,) = self.find(title).children.of(Thread)
        return thread

    @property
    def shopping(self) -> List:
        """The shopping list."""
        (found,) = self.party.query(antiphon.Fact.NAME.is_("Shopping")).of(List)
        return found

    def buy(self, title: str) -> None:
        """Put what a recipe needs on the shopping list, each thing once."""
        wanted = [thing for thing in self.find(title).read().ingredients if thing not in self.shopping]
        self.shopping.extend(wanted)


def cook(home: Path) -> tuple[Cookbook, Cookbook]:
    """Ada and Bob fill a cookbook, apart and together; returns what each of them then has."""
    with (
        antiphon.open(home / "ada", name="Ada", unprotected=True) as ada,
        antiphon.open(home / "bob", name="Bob", unprotected=True) as bob,
    ):
        hers = Cookbook.create(ada)
        hers.add(Recipe("Pancakes", 25, ingredients=["flour", "milk", "eggs"]))
        bob.join(str(hers.party.invite(bob.me)))
        antiphon.sync(ada, bob)
        his = Cookbook(bob.party("Cookbook"))

        hers.scale("Pancakes", 4)  # apart:
        hers.buy("Pancakes")
        his.add(Recipe("Tomato soup", 20, vegetarian=True, ingredients=["tomatoes", "milk"]))
        his.comment("Pancakes", "Buckwheat works, too")
        his.buy("Tomato soup")
        antiphon.sync(ada, bob)  # and together again

        assert [dish.title for dish in hers.vegetarian()] == ["Tomato soup"]
        assert [item.read().title for item in his.quick(30)] == ["Tomato soup"]
        assert his.find("Pancakes").read() == hers.find("Pancakes").read()
        assert hers.shopping.value == his.shopping.value
        assert hers.conversation("Pancakes").value == his.conversation("Pancakes").value

        print("recipes:", [(item.read().title, item.read().serves) for item in hers.party.query(type=Recipe)])
        print("shopping:", hers.shopping.value)
        print("Ada saw:", hers.news)
        return hers, his


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, help="a folder for the two stores; a temporary one by default")
    home = parser.parse_args().home
    if home is not None:
        cook(home)
        return
    with tempfile.TemporaryDirectory() as folder:
        cook(Path(folder))


if __name__ == "__main__":
    main()
